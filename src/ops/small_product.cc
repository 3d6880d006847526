#include "ops/small_product.h"

#include <cstring>

#include "base/platform.h"

namespace hctr::ops::cpu {
namespace {

/// Sixteen floats, in as many registers as the processor needs for them.
using Lanes = float __attribute__((vector_size(kProductColumns * sizeof(float))));

/// One block of the result, which stays in registers.
inline __attribute__((always_inline)) void product_block(const float* a, int64_t a_stride, const float* b,
                                                         int64_t b_stride, float* c, int64_t c_stride, int64_t depth) {
  Lanes sums[kProductRows] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Lanes row;
    std::memcpy(&row, b + k * b_stride, sizeof row);
    for (int64_t i = 0; i < kProductRows; ++i) sums[i] += a[i * a_stride + k] * row;
  }
  for (int64_t i = 0; i < kProductRows; ++i) std::memcpy(c + i * c_stride, &sums[i], sizeof sums[i]);
}

}  // namespace

HCTR_CLONES_FOR_WIDE_VECTORS
void small_product(SmallMatrix<const float> a, SmallMatrix<const float> b, SmallMatrix<float> c, int64_t rows,
                   int64_t columns, int64_t depth) {
  for (int64_t i = 0; i < rows; i += kProductRows)
    for (int64_t j = 0; j < columns; j += kProductColumns)
      product_block(a.data + i * a.stride, a.stride, b.data + j, b.stride, c.data + i * c.stride + j, c.stride, depth);
}

}  // namespace hctr::ops::cpu
