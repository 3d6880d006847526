// Reads a slot's column a second time with a distinct key per value, for metrics of groups.
#pragma once

#include <optional>

#include "formats/data/data_section.h"

namespace hctr {

/// If several values of a slot may share a key (because of "buckets", or because the vocabulary lacks these values),
/// adds a sparse input with one slot. Its keys are 63-bit hashes of the same column. Returns the index of the added
/// input; empty if every value already has its own key, or if the section does not name the slot's column.
std::optional<size_t> add_unshared_slot(DataSection&, size_t input, int64_t slot);

/// The reason why values share keys, for formats that add_unshared_slot() does not support; else empty.
std::string why_shared(const DataSection&);

}  // namespace hctr
