// Helpers for the kernels of a layer with one output: stores, and the reduction of partial sums to gradients.
#pragma once

#include <optional>
#include <vector>

#include "ops/common/element_loops.cuh"
#include "ops/common/part_totals.cuh"
#include "ops/gemm/concat_linear.h"
#include "ops/gemm/concat_linear_parts.h"

namespace hctr::ops::cuda {

template <class T>
inline constexpr int kConcatPack = 16 / sizeof(T);

/// Stores 16 aligned bytes, or one element. The 16-byte store is inline assembly, because the compiler would split it
/// into eight two-byte stores here, even if the source stored a 16-byte type.
template <class T, int V>
__device__ inline void store_as_one(T* to, const float (&from)[V]) {
  static_assert(sizeof(T) * V == 16 || V == 1);
  if constexpr (V == 8) {
    uint32_t two[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) two[j] = round_two<T>(from[2 * j], from[2 * j + 1]);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(two[0]), "r"(two[1]), "r"(two[2]),
                 "r"(two[3])
                 : "memory");
  } else if constexpr (V == 4) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(from[0]), "f"(from[1]), "f"(from[2]),
                 "f"(from[3])
                 : "memory");
  } else {
    *to = static_cast<T>(from[0]);
  }
}

/// Adds the partial sums `sums` over parts. A part has concat_linear_part_width() elements: for d_w, for the bias
/// gradients through ReLUs, and the sum of d_y.
inline void add_concat_totals(Context& ctx, const char* name, const float* sums, int64_t parts,
                              const std::vector<ConcatLinearInput>& inputs, const Tensor& d_w,
                              const std::optional<Tensor>& d_bias) {
  const int64_t width = d_w.dim(0), part_width = concat_linear_part_width(width);
  const float *bias_sums = sums + width, *d_y_sums = bias_sums + width;
  dispatch_float(d_w.dtype(), [&]<class Out>() {
    std::vector<PartTotals<Out>> totals{{sums, parts, part_width, width, d_w.data<Out>(), d_w.row_stride()}};
    if (d_bias) totals.push_back({d_y_sums, parts, part_width, 1, d_bias->data<Out>()});
    int64_t first = 0;
    for (const ConcatLinearInput& input : inputs) {
      if (const auto& relu = input.below_relu)
        totals.push_back({bias_sums + first, parts, part_width, input.x.dim(1), relu->d_bias.data<Out>()});
      first += input.x.dim(1);
    }
    add_parts<Out>(ctx, name, totals);
  });
}

}  // namespace hctr::ops::cuda
