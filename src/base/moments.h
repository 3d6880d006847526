// Mean, variance and skewness of numbers that come one by one.
#pragma once

#include <cmath>
#include <cstdint>

namespace hctr {

/// Sums of powers of distances from the mean. Sources: B. P. Welford, "Note on a Method for Calculating Corrected Sums
/// of Squares and Products", Technometrics 4 (1962); of cubes P. Pébay, "Formulas for robust, one-pass parallel
/// computation of covariances and arbitrary-order statistical moments", SAND2008-6212, 2008.
class Moments {
 public:
  void add(double x) {
    ++count_;
    const auto n = static_cast<double>(count_);
    const double distance = x - mean_, step = distance / n;
    mean_ += step;
    const double square = distance * (x - mean_);
    cubes_ += square * step * (n - 2) - 3 * step * squares_;
    squares_ += square;
  }
  int64_t count() const { return count_; }
  double mean() const { return mean_; }
  /// 0 of no number.
  double deviation() const { return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_)); }
  /// 0 where all numbers are equal.
  double skewness() const {
    return squares_ <= 0 ? 0 : std::sqrt(static_cast<double>(count_)) * cubes_ / std::pow(squares_, 1.5);
  }

 private:
  int64_t count_ = 0;
  double mean_ = 0, squares_ = 0, cubes_ = 0;
};

}  // namespace hctr
