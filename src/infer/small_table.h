// Parses small tables in memory without a Reader.
#pragma once

#include <optional>

#include "infer/sample_arrays.h"

namespace hctr {

/// Parses the samples of a small table in memory on the calling thread: starting a reader's threads would take longer.
/// Returns none for other sources, larger tables, and the policy to skip bad records: these need a Reader. Errors:
/// those of reading.
std::optional<SampleArrays> parse_small_table(const DataSection&, const Source&);

}  // namespace hctr
