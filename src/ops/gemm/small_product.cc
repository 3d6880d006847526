#include "ops/gemm/small_product.h"

#include <cstring>

#include "core/base/platform.h"
#include "core/base/vectors.h"

namespace hctr::ops::cpu {
namespace {

/// Sixteen floats; the compiler maps them to the processor's vector registers.
using Lanes = float __attribute__((vector_size(kProductColumns * sizeof(float))));

/// One block of the result, accumulated in registers.
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

using Floats4 = float __attribute__((vector_size(4 * sizeof(float))));
static_assert(kProductRows == 4);

/// Transposes a 4 x 4 block.
void transpose_block(const float* a, int64_t a_stride, float* b, int64_t b_stride) {
  Floats4 row[4];
  for (int64_t i = 0; i < 4; ++i) row[i] = load_vector<Floats4>(a + i * a_stride);
  const Floats4 low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
                high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
                next_low = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5),
                next_high = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  store_vector(b, __builtin_shufflevector(low, next_low, 0, 1, 4, 5));
  store_vector(b + b_stride, __builtin_shufflevector(low, next_low, 2, 3, 6, 7));
  store_vector(b + 2 * b_stride, __builtin_shufflevector(high, next_high, 0, 1, 4, 5));
  store_vector(b + 3 * b_stride, __builtin_shufflevector(high, next_high, 2, 3, 6, 7));
}

}  // namespace

HCTR_CLONES_FOR_WIDE_VECTORS
void small_product(SmallMatrix<const float> a, SmallMatrix<const float> b, SmallMatrix<float> c, int64_t rows,
                   int64_t columns, int64_t depth) {
  for (int64_t i = 0; i < rows; i += kProductRows)
    for (int64_t j = 0; j < columns; j += kProductColumns)
      product_block(a.data + i * a.stride, a.stride, b.data + j, b.stride, c.data + i * c.stride + j, c.stride, depth);
}

void transpose(SmallMatrix<const float> a, int64_t rows, int64_t columns, SmallMatrix<float> b) {
  const int64_t whole = columns / 4 * 4;
  for (int64_t j = 0; j < whole; j += 4)
    for (int64_t i = 0; i < rows; i += 4)
      transpose_block(a.data + i * a.stride + j, a.stride, b.data + j * b.stride + i, b.stride);
  for (int64_t j = whole; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) b.data[j * b.stride + i] = a.data[i * a.stride + j];
}

}  // namespace hctr::ops::cpu
