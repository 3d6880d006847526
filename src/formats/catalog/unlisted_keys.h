// The keys of values that are not in a vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/data/data_section.h"

namespace hctr {

/// A set with at least this many values fails if none of the values matches. With fewer values, it may be coincidence
/// that none matches.
inline constexpr int64_t kUnmatchedToFail = 100;

/// For each slot, the key of all values that are not in the slot's vocabulary; empty for slots without a vocabulary.
/// Errors: those of reading vocabularies.
std::vector<std::optional<int64_t>> unlisted_keys(const DataSection&);

}  // namespace hctr
