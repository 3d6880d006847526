// The keys of values that a vocabulary lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/data/data_section.h"

namespace hctr {

/// If none of this many keys or values matches, that is an error and no coincidence.
inline constexpr int64_t kUnmatchedToFail = 100;

/// By slot: the key shared by all values that the slot's vocabulary lacks; nothing for slots without a vocabulary.
/// Errors: those of reading vocabularies.
std::vector<std::optional<int64_t>> unlisted_keys(const DataSection&);

}  // namespace hctr
