// Checks that several formats share.
#pragma once

#include <cstdint>
#include <string>

#include "config/problems.h"
#include "formats/data/data_section.h"
#include "formats/data/source.h"

namespace hctr {

/// Errors: Error(data) if a data set has no records. A source that lists its files may be empty.
void expect_records(int64_t records, const Source&);
/// Checks that "slot_size_array" is empty or has a number for each slot. `pointer`: JSON pointer of the section.
void check_slot_sizes(const DataSection&, const std::string& pointer, Problems&);

}  // namespace hctr
