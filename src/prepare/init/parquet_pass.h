// The pass over Parquet files.
#pragma once

#include "prepare/init/init.h"
#include "prepare/init/table_pass.h"

namespace hctr {

/// Reads every row once. Writes rows to `split`, except columns of unsupported types. Errors: Error(io); Error(data)
/// naming file and column; Error(usage) for a label that is not a column, or no column of values.
TablePass read_parquet_table(const std::vector<fs::path>& files, const InitOptions&, const SplitFiles& split);

/// Checks that an evaluation file has these columns. Errors: Error(data), Error(io).
void check_eval_parquet(const fs::path&, const std::vector<std::string>& columns);

}  // namespace hctr
