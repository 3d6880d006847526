// The keys of values that a vocabulary lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/data/data_section.h"

namespace hctr {

/// Of so many keys or values none of which matches anything, that is an error and no chance.
inline constexpr int64_t kUnmatchedToFail = 100;

/// By slot: the key that all values share which the slot's vocabulary lacks; nothing for slots without a vocabulary.
/// Errors: those of reading vocabularies.
std::vector<std::optional<int64_t>> unlisted_keys(const DataSection&);

}  // namespace hctr
