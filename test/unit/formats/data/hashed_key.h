// The formula of hashed keys, as docs/data.md states it.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/random.h"
#include "formats/data/text_values.h"

namespace hctr::data_test {

/// The key of `text` in a slot with `buckets` keys: floor(h * buckets / 2^64) with h = text_hash(text, mix64(seed +
/// slot)).
inline int64_t csv_hashed_key(std::string_view text, uint64_t seed, int64_t slot, int64_t buckets) {
  const uint64_t hash = text_hash(text, mix64(seed + static_cast<uint64_t>(slot)));
  return static_cast<int64_t>((static_cast<unsigned __int128>(hash) * static_cast<uint64_t>(buckets)) >> 64);
}

}  // namespace hctr::data_test
