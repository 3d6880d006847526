// Mean, variance and skewness of a stream of numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace hctr {

/// Streaming sums of powers of the distance from the mean. Every number enters as its distance from the first number.
/// For large numbers that are close together, such as times in nanoseconds, this subtraction is exact and avoids
/// cancellation. The result depends only on the order of the calls. Sources: B. P. Welford, "Note on a Method for
/// Calculating Corrected Sums of Squares and Products", Technometrics 4 (1962); for merge() and cubes P. Pébay,
/// "Formulas for robust, one-pass parallel computation of covariances and arbitrary-order statistical moments",
/// SAND2008-6212, 2008.
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
  /// Adds all numbers except NaN; faster than single calls. Returns how many numbers were added.
  int64_t add(std::span<const double>);
  void merge(const Moments&);

  int64_t count() const { return count_; }
  double mean() const { return first_ + shift_; }
  double squares() const { return squares_; }
  /// Standard deviation of the population. 0 if there are no numbers.
  double deviation() const { return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_)); }
  /// Returns 0 if all numbers are equal.
  double skewness() const {
    return squares_ <= 0 ? 0 : std::sqrt(static_cast<double>(count_)) * cubes_ / std::pow(squares_, 1.5);
  }

 private:
  int64_t count_ = 0;
  double first_ = 0, shift_ = 0;  // the mean is first_ + shift_
  double squares_ = 0, cubes_ = 0;
};

/// Moments and range of the numbers in a column.
struct NumberStatistics {
  Moments moments{};
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();

  /// Adds all numbers except NaN. Returns how many numbers were added.
  int64_t add(std::span<const double>);
  void merge(const NumberStatistics&);
  /// Whether the column has at least two different numbers.
  bool varies() const { return least < most; }
};

}  // namespace hctr
