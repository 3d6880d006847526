// Measures the replacement period of the rows in memory.
#pragma once

#include <cstdint>

namespace hctr {

/// Measures the replacement period: in this number of steps, as many rows are evicted as memory holds. The result is an
/// exponential mean over the last evictions.
class Turnover {
 public:
  /// Records that `leaving` of the `rows` rows in memory are evicted before step `step`. Steps count modulo 2^32 and
  /// never decrease.
  void add(uint32_t step, int64_t rows, int64_t leaving) {
    left_ += leaving;
    const auto since = static_cast<double>(step - last_);
    if (since == 0 || left_ == 0) return;  // count evictions by evaluations with the next step
    const double now = since * static_cast<double>(rows) / static_cast<double>(left_);
    mean_ = mean_ > 0 ? mean_ + (now - mean_) / 4 : now;
    last_ = step;
    left_ = 0;
  }
  double steps() const { return mean_; }

 private:
  uint32_t last_ = 0;  // step of the last eviction
  int64_t left_ = 0;   // rows evicted since step `last_`
  double mean_ = 0;    // 0: unknown
};

}  // namespace hctr
