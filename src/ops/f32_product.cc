#include "ops/f32_product.h"

#include <algorithm>

namespace hctr::ops {

DividedTiles divide_f32_product(int64_t tiles, int64_t steps, int64_t multiprocessors) {
  constexpr int64_t kLeastSteps = 4;  // of a block: fewer take less time than adding up their sums
  return divide_tiles(tiles, steps, kLeastSteps, multiprocessors);
}

bool takes_long_f32_tiles(bool weight_gradient, int64_t m, int64_t n) {
  const auto up = [](int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; };
  const int64_t high = weight_gradient ? 64 : 256, wide = weight_gradient ? 256 : 64;
  return 16 * up(m, 128) * up(n, 128) > 17 * up(m, high) * up(n, wide);  // long ones need more copies
}

// Measured with 132 multiprocessors. With less work, parts of sums that blocks hand to each other take too long; with
// few columns, or few tiles of a gradient of weights, the library is better.
bool f32_product_gains(F32Use use, int64_t m, int64_t n, int64_t k, int64_t multiprocessors) {
  constexpr int64_t kLeastOfEach = 6'000'000, kLeastPlainOfEach = 8'000'000;  // products of a multiprocessor
  constexpr int64_t kLeastSide = 256, kLeastPlainColumns = 384, kLeastDepth = 128, kLeastWeights = 150'000;
  const auto each =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / static_cast<double>(multiprocessors);
  if (each < kLeastOfEach || std::min(m, n) < kLeastSide || k < kLeastDepth) return false;
  switch (use) {
    case F32Use::ended:
      return true;
    case F32Use::weight_gradient:
      return m * n >= kLeastWeights;
    default:
      return n >= kLeastPlainColumns && (each >= kLeastPlainOfEach || takes_long_f32_tiles(false, m, n));
  }
}

}  // namespace hctr::ops
