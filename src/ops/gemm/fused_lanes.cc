#include "ops/gemm/fused_lanes.h"

#include <cmath>

#include "core/base/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hctr::ops {
namespace {

void add_one_by_one(const LaneOperands& of, int64_t rows, float* sums) {
  constexpr int64_t kColumns = 16;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      float sum = sums[i * kColumns + j];
      for (int64_t k = 0; k < of.depth; ++k)
        sum = std::fma(of.a[i * of.a_row + k * of.a_column], of.b[k * of.b_row + j], sum);
      sums[i * kColumns + j] = sum;
    }
}

/// Calls block<R>(of, sums) for the R that `rows` is.
template <int kMost, class Block>
void with_rows(int64_t rows, const Block& block) {
  switch (rows) {
    case kMost:
      return block.template operator()<kMost>();
    case 8:
      return block.template operator()<8>();
    case 4:
      return block.template operator()<4>();
    case 2:
      return block.template operator()<2>();
    default:
      return block.template operator()<1>();
  }
}

#if defined(__x86_64__)
/// Two registers of sixteen a row.
template <int R>
__attribute__((target("avx512f"))) void block_of_32(const LaneOperands& of, float* sums) {
  __m512 left[R], right[R];
  for (int i = 0; i < R; ++i) {
    left[i] = _mm512_loadu_ps(sums + i * 32);
    right[i] = _mm512_loadu_ps(sums + i * 32 + 16);
  }
  const float *a = of.a, *b = of.b;
  for (int64_t k = 0; k < of.depth; ++k, a += of.a_column, b += of.b_row) {
    const __m512 b_left = _mm512_loadu_ps(b), b_right = _mm512_loadu_ps(b + 16);
    for (int i = 0; i < R; ++i) {
      const __m512 factor = _mm512_set1_ps(a[i * of.a_row]);
      left[i] = _mm512_fmadd_ps(factor, b_left, left[i]);
      right[i] = _mm512_fmadd_ps(factor, b_right, right[i]);
    }
  }
  for (int i = 0; i < R; ++i) {
    _mm512_storeu_ps(sums + i * 32, left[i]);
    _mm512_storeu_ps(sums + i * 32 + 16, right[i]);
  }
}

/// Two registers of eight a row.
template <int R>
__attribute__((target("avx2,fma"))) void block_of_16(const LaneOperands& of, float* sums) {
  __m256 left[R], right[R];
  for (int i = 0; i < R; ++i) {
    left[i] = _mm256_loadu_ps(sums + i * 16);
    right[i] = _mm256_loadu_ps(sums + i * 16 + 8);
  }
  const float *a = of.a, *b = of.b;
  for (int64_t k = 0; k < of.depth; ++k, a += of.a_column, b += of.b_row) {
    const __m256 b_left = _mm256_loadu_ps(b), b_right = _mm256_loadu_ps(b + 8);
    for (int i = 0; i < R; ++i) {
      const __m256 factor = _mm256_set1_ps(a[i * of.a_row]);
      left[i] = _mm256_fmadd_ps(factor, b_left, left[i]);
      right[i] = _mm256_fmadd_ps(factor, b_right, right[i]);
    }
  }
  for (int i = 0; i < R; ++i) {
    _mm256_storeu_ps(sums + i * 16, left[i]);
    _mm256_storeu_ps(sums + i * 16 + 8, right[i]);
  }
}

constexpr FusedLanes kLanesOf512{12, 32, [](const LaneOperands& of, int64_t rows, float* sums) {
                                   with_rows<12>(rows, [&]<int R>() { block_of_32<R>(of, sums); });
                                 }};
constexpr FusedLanes kLanesOf256{6, 16, [](const LaneOperands& of, int64_t rows, float* sums) {
                                   with_rows<6>(rows, [&]<int R>() {
                                     if constexpr (R <= 6) block_of_16<R>(of, sums);
                                   });
                                 }};
#endif

constexpr FusedLanes kPlainLanes{4, 16, add_one_by_one};

}  // namespace

const FusedLanes& fused_lanes() {
#if defined(__x86_64__)
  if (processor_has("avx512f")) return kLanesOf512;
  if (processor_has("avx2") && processor_has("fma")) return kLanesOf256;
#endif
  return kPlainLanes;
}

}  // namespace hctr::ops
