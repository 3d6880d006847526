#include "prepare/generate/power_law.h"

#include <algorithm>
#include <cmath>

namespace hctr {
namespace {
constexpr int kKnots = 16384;
}

PowerLaw::PowerLaw(int64_t size, double alpha) : size_(size), knots_(kKnots + 1) {
  const double top = static_cast<double>(size) + 1;
  for (int i = 0; i <= kKnots; ++i) {
    const double u = static_cast<double>(i) / kKnots;
    const double power = 1 - alpha;
    const double y =
        std::abs(power) < 1e-9 ? std::exp(u * std::log(top)) : std::pow((std::pow(top, power) - 1) * u + 1, 1 / power);
    knots_[static_cast<size_t>(i)] = y - 1;
  }
}

int64_t PowerLaw::rank(double u) const {
  const double at = u * kKnots;
  const auto i = static_cast<size_t>(at);
  const double y = knots_[i] + (knots_[i + 1] - knots_[i]) * (at - static_cast<double>(i));
  return std::min(static_cast<int64_t>(y), size_ - 1);
}

}  // namespace hctr
