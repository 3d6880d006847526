// Keys for (column, value) pairs, made so that two columns never share one.
#pragma once

#include <cstdint>

#include "core/base/random.h"

namespace hctr {

/// A bijection of [0, 2^63 - 1) that looks random: distinct inputs give distinct keys, none negative and none the
/// largest int64, which HugeCTR takes for an empty bucket. Cycle walking: J. Black and P. Rogaway, "Ciphers with
/// Arbitrary Finite Domains", CT-RSA 2002; two rounds on average.
constexpr int64_t scattered_key(uint64_t x) {
  constexpr uint64_t domain = (uint64_t{1} << 63) - 1;
  do x = mix64(x);
  while (x >= domain);
  return static_cast<int64_t>(x);
}

/// Values that every column has: of an empty field, and of values that are too rare. All others are kFirstValue or
/// above.
inline constexpr uint64_t kMissing = 0, kRare = 1, kFirstValue = 2;

/// The key of a value among `keys` keys of its column, at least 3: missing 0, rare 1, else 2 + mix64(value) mod (keys -
/// 2).
constexpr uint64_t ranged_key(uint64_t value, uint64_t keys) {
  return value < kFirstValue ? value : kFirstValue + mix64(value) % (keys - kFirstValue);
}

/// The key of a 64-bit hash among `keys` keys: floor(hash * keys / 2^64).
inline int64_t scaled_key(uint64_t hash, int64_t keys) {
  return static_cast<int64_t>(
      static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * static_cast<uint64_t>(keys)) >> 64));
}

/// The seed of text_hash() for slot number `slot`, from 0: one text has independent hashes in two slots. `seed` is the
/// hash_seed of a Data layer; `preprocess`, whose slots are its categories, uses 0.
constexpr uint64_t slot_seed(uint64_t seed, int64_t slot) { return mix64(seed + static_cast<uint64_t>(slot)); }

/// A pair of values as one number, which two pairs share only by chance.
constexpr uint64_t pair_code(uint64_t a, uint64_t b) { return mix64(a ^ mix64(b)); }

/// scattered_key() of `count` values in place. Values that need another round are gathered, so that rounds run without
/// an unpredictable branch: three times as fast as one value after the other.
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
