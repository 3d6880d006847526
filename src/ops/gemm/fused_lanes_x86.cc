// The block functions for AVX2 and AVX-512. CMake compiles this file for x86 processors, and fused_lanes_portable.cc
// for others.
#include <immintrin.h>

#include "core/base/processor.h"
#include "ops/gemm/fused_lanes.h"

namespace hctr::ops {
namespace {

/// Calls block<R>() with R = `rows`.
template <int kMost, class Block>
void with_rows(int64_t rows, const Block& block) {
  if constexpr (kMost > 8)
    if (rows == kMost) return block.template operator()<kMost>();
  if constexpr (kMost >= 8)
    if (rows == 8) return block.template operator()<8>();
  if constexpr (kMost == 6)
    if (rows == 6) return block.template operator()<6>();
  if (rows == 4) return block.template operator()<4>();
  if (rows == 2) return block.template operator()<2>();
  block.template operator()<1>();
}

/// Calls block<R, W>() with R = `rows` and W = `registers`, which is kMost, kMost / 2 or kMost / 4.
template <int kMost, class Block>
void with_width(int64_t rows, int64_t registers, const Block& block) {
  if (rows == 4) return block.template operator()<4, kMost / 4>();
  if (rows == 2 && registers == kMost / 2) return block.template operator()<2, kMost / 2>();
  if (rows == 2) return block.template operator()<2, kMost / 4>();
  if (registers == kMost) return block.template operator()<1, kMost>();
  if (registers == kMost / 2) return block.template operator()<1, kMost / 2>();
  block.template operator()<1, kMost / 4>();
}

// A macro instantiates the same code for two instruction sets, because a function's target cannot be a template
// parameter. A block has R rows of W registers with kLanes elements each; a panel of b has two registers. The unrolled
// loops keep the sums in registers. With one row of a, reading b takes most of the time, so the code prefetches later
// rows of b.
#define HCTR_UNROLLED _Pragma("GCC unroll 16")
#define HCTR_BLOCK_OF(name, instructions, Register, kLanes, load, store, fill, multiply_add)                    \
  template <int R, int W>                                                                                       \
  __attribute__((target(instructions))) void name(const LaneOperands& of) {                                     \
    constexpr int64_t kRowsAhead = 6;                                                                           \
    Register sum[R][W];                                                                                         \
    HCTR_UNROLLED for (int i = 0; i < R; ++i) {                                                                 \
      HCTR_UNROLLED for (int w = 0; w < W; ++w) sum[i][w] =                                                     \
          of.first ? fill(0) : load(of.c + i * of.c_row + w * kLanes);                                          \
    }                                                                                                           \
    const float *a = of.a, *b = of.b;                                                                           \
    for (int64_t k = 0; k < of.depth; ++k, a += of.a_column, b += of.b_row) {                                   \
      Register of_b[W];                                                                                         \
      HCTR_UNROLLED for (int w = 0; w < W; ++w) of_b[w] = load(b + (w / 2) * of.b_panel + (w % 2) * kLanes);    \
      if constexpr (R == 1) {                                                                                   \
        HCTR_UNROLLED for (int w = 0; w < W; ++w) _mm_prefetch(                                                 \
            reinterpret_cast<const char*>(b + kRowsAhead * of.b_row + (w / 2) * of.b_panel + (w % 2) * kLanes), \
            _MM_HINT_T0);                                                                                       \
      }                                                                                                         \
      HCTR_UNROLLED for (int i = 0; i < R; ++i) {                                                               \
        const Register factor = fill(a[i * of.a_row]);                                                          \
        HCTR_UNROLLED for (int w = 0; w < W; ++w) sum[i][w] = multiply_add(factor, of_b[w], sum[i][w]);         \
      }                                                                                                         \
    }                                                                                                           \
    HCTR_UNROLLED for (int i = 0; i < R; ++i) {                                                                 \
      HCTR_UNROLLED for (int w = 0; w < W; ++w) store(of.c + i * of.c_row + w * kLanes, sum[i][w]);             \
    }                                                                                                           \
  }

HCTR_BLOCK_OF(block_of_512, "avx512f", __m512, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_fmadd_ps)
HCTR_BLOCK_OF(block_of_256, "avx2,fma", __m256, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps)
#undef HCTR_BLOCK_OF
#undef HCTR_UNROLLED

constexpr FusedLanes kLanesOf512{
    .rows = 12,
    .columns = 32,
    .add_products = [](const LaneOperands& of,
                       int64_t rows) { with_rows<12>(rows, [&]<int R>() { block_of_512<R, 2>(of); }); },
    .wide_columns = 256,
    .add_wide =
        [](const LaneOperands& of, int64_t rows, int64_t columns) {
          with_width<16>(rows, columns / 16, [&]<int R, int W>() { block_of_512<R, W>(of); });
        }};
constexpr FusedLanes kLanesOf256{
    .rows = 6,
    .columns = 16,
    .add_products = [](const LaneOperands& of,
                       int64_t rows) { with_rows<6>(rows, [&]<int R>() { block_of_256<R, 2>(of); }); },
    .wide_columns = 64,
    .add_wide =
        [](const LaneOperands& of, int64_t rows, int64_t columns) {
          with_width<8>(rows, columns / 8, [&]<int R, int W>() { block_of_256<R, W>(of); });
        }};

}  // namespace

const FusedLanes* vector_lanes() {
  static const FusedLanes* const best = processor_has("avx512f")                        ? &kLanesOf512
                                        : processor_has("avx2") && processor_has("fma") ? &kLanesOf256
                                                                                        : nullptr;
  return best;
}

}  // namespace hctr::ops
