// Mean, variance and skewness of a stream of numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace hctr {

/// Sums of powers of distances from the mean. All sums are of distances from the first number: where numbers are large
/// and close together, such as times in nanoseconds, a subtraction of two of them is exact and nothing is lost to their
/// size. The result depends on the order of the calls alone. Sources: B. P. Welford, "Note on a Method for Calculating
/// Corrected Sums of Squares and Products", Technometrics 4 (1962); of merging and cubes P. Pébay, "Formulas for
/// robust, one-pass parallel computation of covariances and arbitrary-order statistical moments", SAND2008-6212, 2008.
class Moments {
 public:
  Moments() = default;
  /// Restores saved moments; the skewness is unknown. `squares`: the sum of squared distances from the mean.
  Moments(int64_t count, double mean, double squares) : count_(count), first_(mean), squares_(squares) {}

  void add(double x) {
    if (++count_ == 1) first_ = x;
    const auto n = static_cast<double>(count_);
    const double distance = (x - first_) - shift_, step = distance / n;
    shift_ += step;
    const double square = distance * ((x - first_) - shift_);
    cubes_ += square * step * (n - 2) - 3 * step * squares_;
    squares_ += square;
  }
  /// Adds a block of numbers, but for NaN: faster than one by one. Returns how many there were.
  int64_t add(std::span<const double>);
  void merge(const Moments&);

  int64_t count() const { return count_; }
  double mean() const { return first_ + shift_; }
  double squares() const { return squares_; }
  /// 0 of no number.
  double deviation() const { return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_)); }
  /// 0 if all numbers are equal.
  double skewness() const {
    return squares_ <= 0 ? 0 : std::sqrt(static_cast<double>(count_)) * cubes_ / std::pow(squares_, 1.5);
  }

 private:
  int64_t count_ = 0;
  double first_ = 0, shift_ = 0;  // the mean is their sum
  double squares_ = 0, cubes_ = 0;
};

/// Moments and range of a column's numbers.
struct NumberStatistics {
  Moments moments{};
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();

  /// Adds a block of numbers, but for NaN. Returns how many there were.
  int64_t add(std::span<const double>);
  void merge(const NumberStatistics&);
  /// Whether there are two different numbers.
  bool varies() const { return least < most; }
};

}  // namespace hctr
