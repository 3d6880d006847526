#include "prepare/inspect/distinct_count.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/base/random.h"

namespace hctr {

void DistinctCount::add(int64_t key) {
  const uint64_t hash = mix64(static_cast<uint64_t>(key));
  uint8_t& most = registers_[hash >> 50];
  most = std::max(most, static_cast<uint8_t>(1 + std::countl_zero(hash << 14 | 1 << 13)));
  if (!keys_) return;
  keys_->add(static_cast<uint64_t>(key));
  if (keys_->distinct() > bound_) keys_.reset();
}

void DistinctCount::merge(DistinctCount& other) {
  for (size_t i = 0; i < registers_.size(); ++i) registers_[i] = std::max(registers_[i], other.registers_[i]);
  if (keys_ && other.keys_)
    keys_->merge(*other.keys_);
  else
    keys_.reset();
  if (keys_ && keys_->distinct() > bound_) keys_.reset();
}

int64_t DistinctCount::value() const { return keys_ ? keys_->distinct() : estimate(); }

/// Algorithm 6 of Ertl's paper. sigma and tau correct for empty and saturated registers.
int64_t DistinctCount::estimate() const {
  // maximum register value: 1 plus the 50 hash bits that do not select the register
  constexpr size_t kFull = 51;
  const auto m = static_cast<double>(registers_.size());
  std::array<double, kFull + 1> share{};  // fraction of the registers with each value
  for (const uint8_t most : registers_) share[most] += 1 / m;
  if (share[0] > 1 - 0.5 / m) return 0;
  double sigma = share[0], tau = 0;
  for (double x = share[0] * share[0], y = 1; x * y > 0; x *= x, y *= 2) sigma += x * y;
  if (share[kFull] > 0) {
    tau = share[kFull];
    double x = 1 - share[kFull], y = 1;
    for (int i = 0; i < 60; ++i) {
      x = std::sqrt(x);
      y /= 2;
      tau -= (1 - x) * (1 - x) * y;
    }
    tau /= 3;
  }
  double sum = tau;
  for (size_t k = kFull - 1; k >= 1; --k) sum = 0.5 * (sum + share[k]);
  return std::llround(m / (2 * std::log(2.0)) / (sum + sigma));
}

}  // namespace hctr
