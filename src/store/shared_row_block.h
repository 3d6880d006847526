// The blocks of a SharedRowTable, and the hash that assigns keys to blocks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "store/shared_row_table.h"

namespace hctr {

inline constexpr uint64_t kRowsOfSharedBlock = 256;  ///< mean rows per block above which the number of blocks doubles
inline constexpr uint64_t kSharedFirstFactor = 0xBF58476D1CE4E5B9u, kSharedSecondFactor = 0x94D049BB133111EBu;

/// The multiplicative inverse modulo 2^64, by Newton's iteration.
constexpr uint64_t shared_inverse(uint64_t of) {
  uint64_t value = of;
  for (int i = 0; i < 6; ++i) value *= 2 - of * value;
  return value;
}
static_assert(kSharedFirstFactor * shared_inverse(kSharedFirstFactor) == 1 &&
              kSharedSecondFactor * shared_inverse(kSharedSecondFactor) == 1);

/// The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, 2014), which is a bijection.
inline uint64_t shared_hash_of(int64_t key) {
  auto x = static_cast<uint64_t>(key);
  x = (x ^ (x >> 30)) * kSharedFirstFactor;
  x = (x ^ (x >> 27)) * kSharedSecondFactor;
  return x ^ (x >> 31);
}

inline int64_t shared_key_of(uint64_t hash) {
  uint64_t x = (hash ^ (hash >> 31) ^ (hash >> 62)) * shared_inverse(kSharedSecondFactor);
  x = (x ^ (x >> 27) ^ (x >> 54)) * shared_inverse(kSharedFirstFactor);
  return static_cast<int64_t>(x ^ (x >> 30) ^ (x >> 60));
}

/// The number of bits of a hash that select a block. `blocks`: the number of blocks, a power of two.
inline int shared_bits_of(size_t blocks) { return std::countr_zero(blocks); }
/// The number of the block with a hash.
inline size_t shared_block_of(uint64_t hash, int bits) {
  return bits == 0 ? 0 : static_cast<size_t>(hash >> (64 - bits));
}

/// The number of blocks of a table.
inline uint64_t shared_blocks_for(int64_t rows) {
  return std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 1)) / kRowsOfSharedBlock + 1);
}

struct SharedRowTable::Block {
  static constexpr uint64_t kWalk = 1024;  // larger blocks are searched by bisection
  uint64_t count = 0, made = 0;
  const uint64_t* hashes = nullptr;
  const float* rows = nullptr;

  /// The index that the hash has if all hashes are evenly distributed.
  uint64_t guess(uint64_t hash, int bits) const {
    using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(hash << bits) * count) >> 64);
  }
  /// The index of the hash, or `count`.
  uint64_t find(uint64_t hash, int bits) const {
    if (count == 0) return 0;
    uint64_t at = guess(hash, bits);
    if (count > kWalk) {
      at = static_cast<uint64_t>(std::lower_bound(hashes, hashes + count, hash) - hashes);
    } else {
      while (at > 0 && hashes[at] > hash) --at;
      while (at + 1 < count && hashes[at] < hash) ++at;
    }
    return at < count && hashes[at] == hash ? at : count;
  }
};

}  // namespace hctr
