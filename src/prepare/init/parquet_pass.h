// The pass over Parquet files.
#pragma once

#include "prepare/init/init.h"
#include "prepare/init/table_pass.h"

namespace hctr {

/// Reads every row once. Writes rows to `split`, without columns of unsupported types. Errors: Error(io); Error(data)
/// with file and column; Error(usage) if the label is not a column or is a column without values.
TablePass read_parquet_table(const std::vector<fs::path>& files, const InitOptions&, const SplitFiles& split);

/// Checks that an evaluation file has the given columns. Errors: Error(data), Error(io).
void check_eval_parquet(const fs::path&, const std::vector<std::string>& columns);

}  // namespace hctr
