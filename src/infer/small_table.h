// Small tables in memory, without a reader.
#pragma once

#include <optional>

#include "infer/sample_arrays.h"

namespace hctr {

/// The samples of a table in memory with few rows, parsed by the calling thread: starting the threads of a reader takes
/// longer. Nothing where a reader has to read them: other sources, more rows, and tables whose bad rows are left out.
/// Errors: those of reading.
std::optional<SampleArrays> parse_small_table(const DataSection&, const Source&);

}  // namespace hctr
