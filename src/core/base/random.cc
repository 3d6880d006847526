#include "core/base/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/platform.h"

namespace hctr {
namespace {

constexpr int kLanes = 32;

/// Runs the rounds of philox() for kLanes counters. The counters are stored as a structure of arrays, so the compiler
/// vectorizes the loops.
HCTR_CLONES_FOR_WIDE_VECTORS
void philox_rounds(int rounds, uint64_t key, uint32_t* __restrict c0, uint32_t* __restrict c1, uint32_t* __restrict c2,
                   uint32_t* __restrict c3) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0[i];
      const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<uint32_t>(p1);
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/// Evaluates philox() for the counters lo, lo + 1, ..., lo + kLanes - 1.
void philox_lanes(int rounds, uint64_t key, uint64_t hi, uint64_t lo, uint32_t (&values)[kLanes * 4]) {
  uint32_t c[4][kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t counter = lo + static_cast<uint64_t>(i);
    c[0][i] = static_cast<uint32_t>(counter);
    c[1][i] = static_cast<uint32_t>(counter >> 32);
    c[2][i] = static_cast<uint32_t>(hi);
    c[3][i] = static_cast<uint32_t>(hi >> 32);
  }
  philox_rounds(rounds, key, c[0], c[1], c[2], c[3]);
  for (int i = 0; i < kLanes; ++i)
    for (int n = 0; n < 4; ++n) values[4 * i + n] = c[n][i];
}

}  // namespace

void random_bits(uint64_t key, uint64_t hi, uint64_t first, int64_t count, uint32_t* values, int rounds) {
  while (count > 0) {
    uint32_t some[kLanes * 4];
    philox_lanes(rounds, key, hi, first >> 2, some);
    const auto skip = static_cast<int64_t>(first & 3);
    const int64_t take = std::min<int64_t>(count, kLanes * 4 - skip);
    std::copy_n(some + skip, take, values);
    values += take;
    first += static_cast<uint64_t>(take);
    count -= take;
  }
}

double standard_normal(uint32_t a, uint32_t b) {
  const double u = (static_cast<double>(a) + 0.5) / 4294967296.0;  // `u` is never 0, so its logarithm is finite
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(b) / 4294967296.0);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

}  // namespace hctr
