#include "data/distinct_count.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/random.h"

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
  if (keys_ && other.keys_) keys_->take(*other.keys_);
  else keys_.reset();
  if (keys_ && keys_->distinct() > bound_) keys_.reset();
}

int64_t DistinctCount::value() const { return keys_ ? keys_->distinct() : estimate(); }

int64_t DistinctCount::estimate() const {
  const auto m = static_cast<double>(registers_.size());
  double sum = 0;
  int64_t empty = 0;
  for (const uint8_t most : registers_) {
    sum += std::exp2(-static_cast<double>(most));
    empty += most == 0;
  }
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  if (raw <= 2.5 * m && empty > 0) return std::llround(m * std::log(m / static_cast<double>(empty)));
  return std::llround(raw);
}

}  // namespace hctr
