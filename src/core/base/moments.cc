#include "core/base/moments.h"

#include <algorithm>

namespace hctr {

/// Two-pass algorithm. The second pass corrects the mean of the first pass for rounding: T. Chan, G. Golub, R. LeVeque,
/// "Algorithms for computing the sample variance", The American Statistician 37 (1983), equation 1.7.
int64_t Moments::add(std::span<const double> numbers) {
  const auto begin = std::find_if(numbers.begin(), numbers.end(), [](double x) { return !std::isnan(x); });
  if (begin == numbers.end()) return 0;
  Moments block;
  block.first_ = *begin;
  double sum = 0;
  for (auto x = begin; x != numbers.end(); ++x) {
    if (std::isnan(*x)) continue;
    sum += *x - block.first_;
    ++block.count_;
  }
  const auto n = static_cast<double>(block.count_);
  block.shift_ = sum / n;
  double rest = 0;
  for (auto x = begin; x != numbers.end(); ++x) {
    if (std::isnan(*x)) continue;
    const double distance = (*x - block.first_) - block.shift_;
    rest += distance;
    block.squares_ += distance * distance;
    block.cubes_ += distance * distance * distance;
  }
  block.shift_ += rest / n;
  block.squares_ = std::max(0.0, block.squares_ - rest * rest / n);
  merge(block);
  return block.count_;
}

void Moments::merge(const Moments& other) {
  if (other.count_ == 0) return;
  if (count_ == 0) {
    *this = other;
    return;
  }
  const auto a = static_cast<double>(count_), b = static_cast<double>(other.count_), n = a + b;
  const double apart = (other.first_ - first_) + (other.shift_ - shift_);
  cubes_ += other.cubes_ + apart * apart * apart * a * b * (a - b) / (n * n) +
            3 * apart * (a * other.squares_ - b * squares_) / n;
  squares_ += other.squares_ + apart * apart * a * b / n;
  shift_ += apart * b / n;
  count_ += other.count_;
}

int64_t NumberStatistics::add(std::span<const double> numbers) {
  for (const double x : numbers) {
    least = x < least ? x : least;  // ignores NaN, for which the comparison is false
    most = x > most ? x : most;
  }
  return moments.add(numbers);
}

void NumberStatistics::merge(const NumberStatistics& other) {
  moments.merge(other.moments);
  least = std::min(least, other.least);
  most = std::max(most, other.most);
}

}  // namespace hctr
