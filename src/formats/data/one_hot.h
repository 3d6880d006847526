// Builds blocks of samples with exactly one key per slot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "formats/data/sample_block.h"

namespace hctr {

template <class T>
void grow(std::vector<T>& to, int64_t size) {
  if (to.size() < static_cast<size_t>(size)) to.resize(static_cast<size_t>(size));
}

/// Sets the offsets of bags with one key each.
inline void one_key_each(SampleBlock& block, int64_t rows, int64_t slots) {
  grow(block.offsets, rows * slots + 1);
  for (int64_t i = 0; i <= rows * slots; ++i) block.offsets[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  block.one_hot = true;
}

/// Transposes the keys of records with one key per slot into slot-major order, and sets the offsets. Works tile by
/// tile, so that a tile of records stays in the L1 cache. `records`: the address of each record's first key; further
/// keys follow at `stride` bytes. `add` (may be null): added to the keys of each slot.
template <class Key>
void place_one_hot(std::span<const std::byte* const> records, int64_t slots, size_t stride, const int64_t* add,
                   SampleBlock& block) {
  const auto n = static_cast<int64_t>(records.size());
  one_key_each(block, n, slots);
  grow(block.keys, slots * n);
  constexpr int64_t kTile = 64;
  for (int64_t r0 = 0; r0 < n; r0 += kTile) {
    const int64_t r1 = std::min(r0 + kTile, n);
    for (int64_t s = 0; s < slots; ++s) {
      const size_t at = static_cast<size_t>(s) * stride;
      const int64_t more = add ? add[s] : 0;
      int64_t* to = block.keys.data() + s * n;
      for (int64_t r = r0; r < r1; ++r) {
        Key key;
        std::memcpy(&key, records[static_cast<size_t>(r)] + at, sizeof key);
        to[r] = static_cast<int64_t>(key) + more;
      }
    }
  }
}

}  // namespace hctr
