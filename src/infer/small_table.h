// Parses small tables in memory without a Reader.
#pragma once

#include <optional>

#include "infer/sample_arrays.h"

namespace hctr {

/// Parses the samples of a small table in memory on the calling thread, because starting a reader's threads would take
/// longer. Returns none if a Reader is needed: for other sources, for larger tables, and if bad records are to be
/// skipped. Errors: those of reading.
std::optional<SampleArrays> parse_small_table(const DataSection&, const Source&);

}  // namespace hctr
