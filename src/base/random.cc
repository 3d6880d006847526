#include "base/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hctr {
namespace {

/// philox() of kLanes consecutive counters, each step for all of them at once so that the compiler vectorizes it.
constexpr int kLanes = 8;
void philox_lanes(uint64_t key, uint64_t hi, uint64_t lo, uint32_t (&values)[kLanes * 4]) {
  uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    c0[i] = static_cast<uint32_t>(lo + static_cast<uint64_t>(i));
    c1[i] = static_cast<uint32_t>((lo + static_cast<uint64_t>(i)) >> 32);
    c2[i] = static_cast<uint32_t>(hi);
    c3[i] = static_cast<uint32_t>(hi >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
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
  for (int i = 0; i < kLanes; ++i) {
    values[4 * i] = c0[i];
    values[4 * i + 1] = c1[i];
    values[4 * i + 2] = c2[i];
    values[4 * i + 3] = c3[i];
  }
}

}  // namespace

void random_bits(uint64_t key, uint64_t hi, uint64_t first, int64_t count, uint32_t* values) {
  while (count > 0) {
    uint32_t some[kLanes * 4];
    philox_lanes(key, hi, first >> 2, some);
    const auto skip = static_cast<int64_t>(first & 3);
    const int64_t take = std::min<int64_t>(count, kLanes * 4 - skip);
    std::copy_n(some + skip, take, values);
    values += take;
    first += static_cast<uint64_t>(take);
    count -= take;
  }
}

double standard_normal(uint32_t a, uint32_t b) {
  const double u = (static_cast<double>(a) + 0.5) / 4294967296.0;  // never 0, so the logarithm is finite
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(b) / 4294967296.0);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

}  // namespace hctr
