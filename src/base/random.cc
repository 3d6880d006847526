#include "base/random.h"

#include <cmath>
#include <numbers>

namespace hctr {

double standard_normal(uint32_t a, uint32_t b) {
  const double u = (static_cast<double>(a) + 0.5) / 4294967296.0;  // never 0, so the logarithm is finite
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(b) / 4294967296.0);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(angle);
}

}  // namespace hctr
