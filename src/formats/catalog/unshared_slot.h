// Reads a slot's column a second time with a distinct key for each value, for metrics of groups.
#pragma once

#include <optional>

#include "formats/data/data_section.h"

namespace hctr {

/// If values of a slot may share a key, by "buckets" or as the values that a vocabulary lacks, adds a sparse input of
/// one slot whose keys are 63-bit hashes of the values in the same column. Returns its index; nothing if each value has
/// its own key already, or if the section does not name the column of the slot.
std::optional<size_t> add_unshared_slot(DataSection&, size_t input, int64_t slot);

/// Why values of a slot share keys that cannot be separated; empty if they do not, or add_unshared_slot() can.
std::string why_shared(const DataSection&);

}  // namespace hctr
