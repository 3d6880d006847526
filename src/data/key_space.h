// Keys for (column, value) pairs, made so that two columns never share one.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace hctr {

/// A bijection of [0, 2^63 - 1) that looks random: distinct inputs give distinct keys, none negative and none the largest
/// int64, which HugeCTR takes for an empty bucket. Cycle walking: J. Black and P. Rogaway, "Ciphers with Arbitrary Finite
/// Domains", CT-RSA 2002; two rounds on average.
constexpr int64_t scattered_key(uint64_t x) {
  constexpr uint64_t domain = (uint64_t{1} << 63) - 1;
  do x = mix64(x);
  while (x >= domain);
  return static_cast<int64_t>(x);
}

}  // namespace hctr
