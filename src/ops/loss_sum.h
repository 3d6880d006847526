// Sums of losses over rows on the CPU, in an order that depends on the number of rows alone.
#pragma once

#include <algorithm>
#include <array>

#include "device/context.h"

namespace hctr::ops::cpu {

/// The sum of f(b) over b in [0, rows), in double.
template <class F>
double sum_loss(Context& ctx, int64_t rows, const F& f) {
  constexpr int64_t kParts = 64;
  const int64_t part = std::max<int64_t>(1, (rows + kParts - 1) / kParts);
  std::array<double, kParts> sums{};
  ctx.threads().parallel_for(rows, part, [&](int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t b = begin; b < end; ++b) sum += f(b);
    sums[static_cast<size_t>(begin / part)] = sum;
  });
  double sum = 0;
  for (const double of_part : sums) sum += of_part;
  return sum;
}

}  // namespace hctr::ops::cpu
