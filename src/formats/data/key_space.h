// Maps (column, value) pairs to keys such that no two columns have a key in common.
#pragma once

#include <cstdint>

#include "core/base/random.h"

namespace hctr {

/// A pseudorandom bijection of [0, 2^63 - 1): distinct inputs yield distinct keys. The result is never negative and
/// never the largest int64, which HugeCTR uses to mark an empty bucket. Method: cycle walking (J. Black and P. Rogaway,
/// "Ciphers with Arbitrary Finite Domains", CT-RSA 2002), two rounds on average.
constexpr int64_t scattered_key(uint64_t x) {
  constexpr uint64_t domain = (uint64_t{1} << 63) - 1;
  do x = mix64(x);
  while (x >= domain);
  return static_cast<int64_t>(x);
}

/// Special values of every column: kMissing for an empty field, kRare for rare values. All other values are at least
/// kFirstValue.
inline constexpr uint64_t kMissing = 0, kRare = 1, kFirstValue = 2;

/// The key of a value in a column that has `keys` keys (at least 3): 0 if missing, 1 if rare, else 2 + mix64(value) mod
/// (keys - 2).
constexpr uint64_t ranged_key(uint64_t value, uint64_t keys) {
  return value < kFirstValue ? value : kFirstValue + mix64(value) % (keys - kFirstValue);
}

/// Maps a 64-bit hash to one of `keys` keys: floor(hash * keys / 2^64).
inline int64_t scaled_key(uint64_t hash, int64_t keys) {
  return static_cast<int64_t>(
      static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * static_cast<uint64_t>(keys)) >> 64));
}

/// The seed of text_hash() for slot `slot`, so that equal texts have independent hashes in different slots. `seed`:
/// hash_seed of a Data layer. `preprocess`, whose slots are its categories, uses seed 0.
constexpr uint64_t slot_seed(uint64_t seed, int64_t slot) { return mix64(seed + static_cast<uint64_t>(slot)); }

/// Combines two values into one; distinct pairs collide only by chance.
constexpr uint64_t pair_code(uint64_t a, uint64_t b) { return mix64(a ^ mix64(b)); }

/// Applies scattered_key() to `count` values in place. Values that need another round are gathered, which avoids
/// unpredictable branches. This is three times faster than one value at a time.
inline void scatter_keys(int64_t* values, int32_t count) {
  constexpr uint64_t domain = (uint64_t{1} << 63) - 1;
  constexpr int32_t kMost = 64;
  int32_t pending[kMost];
  for (; count > 0; values += kMost, count -= kMost) {
    int32_t left = count < kMost ? count : kMost;
    for (int32_t i = 0; i < left; ++i) pending[i] = i;
    while (left > 0) {
      int32_t still = 0;
      for (int32_t i = 0; i < left; ++i) {
        const int32_t at = pending[i];
        const uint64_t mixed = mix64(static_cast<uint64_t>(values[at]));
        values[at] = static_cast<int64_t>(mixed);
        pending[still] = at;
        still += mixed >= domain;
      }
      left = still;
    }
  }
}

}  // namespace hctr
