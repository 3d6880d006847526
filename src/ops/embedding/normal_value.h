// Normally distributed random numbers that are bitwise equal on every device.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/platform.h"

namespace hctr::ops {

HCTR_HD inline double rounded_product(double a, double b) { return HCTR_ROUNDED_PRODUCT(a, b); }

/// The natural logarithm of 0 < x < 1, with relative error 1e-13. Uses only operations that every device rounds
/// equally: ln x = e ln 2 + 2 (s + s^3 / 3 + s^5 / 5 + ...), where x = m 2^e and s = (m - 1) / (m + 1).
HCTR_HD inline double portable_log(double x) {
  int exponent = 0;
  double m = frexp(x, &exponent);  // frexp() is exact
  if (m < 0.70710678118654752) {
    m = rounded_product(m, 2.0);
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0), square = rounded_product(s, s);
  double sum = 0;
  for (int n = 17; n >= 1; n -= 2) sum = rounded_product(sum, square) + 1.0 / n;
  return rounded_product(exponent, 0.69314718055994531) + rounded_product(rounded_product(2.0, s), sum);
}

/// The standard normal quantile of the probability (bits + 0.5) / 2^32, with error 1e-7. Source: algorithm AS 241
/// (PPND7), M. J. Wichura, Applied Statistics 37, 1988. The algorithm's third region, the far tails, is omitted,
/// because 32-bit probabilities never reach it.
HCTR_HD inline float normal_float(uint32_t bits) {
  const auto ratio = [](double r, double a0, double a1, double a2, double a3, double b1, double b2, double b3) {
    const double above = rounded_product(rounded_product(rounded_product(a3, r) + a2, r) + a1, r) + a0;
    const double below = rounded_product(rounded_product(rounded_product(b3, r) + b2, r) + b1, r) + 1.0;
    return above / below;
  };
  const double share = rounded_product(bits + 0.5, 1.0 / 4294967296.0), q = share - 0.5;
  if (fabs(q) <= 0.425) {
    const double r = 0.180625 - rounded_product(q, q);
    return static_cast<float>(rounded_product(
        q, ratio(r, 3.3871327179, 50.434271938, 159.29113202, 59.109374720, 17.895169469, 78.757757664, 67.187563600)));
  }
  const double tail = q < 0 ? share : 1.0 - share, r = sqrt(-portable_log(tail)) - 1.6;
  const double x = ratio(r, 1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103, 0.73700164250, 0.12021132975, 0.0);
  return static_cast<float>(q < 0 ? -x : x);
}

}  // namespace hctr::ops
