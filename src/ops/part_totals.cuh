// The last step of sums over all rows, as those of a bias's gradient: sums of parts of the rows become one.
#pragma once

#include "ops/element_loops.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops::cuda {

/// out[j step] = the sum over parts of sums[part stride + j].
template <class Out>
struct PartTotals {
  const float* sums;
  int64_t stride, columns;
  Out* out;
  int64_t step = 1;
};

inline constexpr int kMostPartTotals = 12;

template <class Out>
struct PartTotalsList {
  PartTotals<Out> at[kMostPartTotals];
  int32_t first_block[kMostPartTotals + 1] = {};
  int count = 0;

  void add(const PartTotals<Out>& one) {
    at[count] = one;
    first_block[count + 1] = first_block[count] + static_cast<int32_t>((one.columns + 31) / 32);
    ++count;
  }
};

/// 32 columns a block, whose 32 warps each sum every 32nd part first.
template <class Out>
__global__ void __launch_bounds__(1024)
    part_totals_kernel(const __grid_constant__ PartTotalsList<Out> list, int64_t parts) {
  __shared__ float shared[32][33];
  int i = 0;
  while (i + 1 < list.count && static_cast<int32_t>(blockIdx.x) >= list.first_block[i + 1]) ++i;
  const PartTotals<Out>& own = list.at[i];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) - list.first_block[i]) * 32, j = first + lane;
  float sum = 0;
  if (j < own.columns)
#pragma unroll 4
    for (int64_t part = warp; part < parts; part += 32) sum += own.sums[part * own.stride + j];
  shared[warp][lane] = sum;
  __syncthreads();
  const float total = warp_sum(shared[lane][warp]);  // of column `warp`
  const int64_t column = first + warp;
  if (lane == 0 && column < own.columns) own.out[column * own.step] = static_cast<Out>(total);
}

/// All totals of a list in one launch, in an order that depends on the number of parts alone.
template <class Out>
void add_parts(Context& ctx, const char* name, const PartTotalsList<Out>& list, int64_t parts) {
  if (list.first_block[list.count] == 0) return;
  launch(ctx, name, Grid{list.first_block[list.count], 1024, 0}, part_totals_kernel<Out>, list, parts);
}

/// d_bias from `sums` [parts, columns].
template <class Out>
void add_bias_parts(Context& ctx, const float* sums, int64_t parts, const Tensor& d_bias) {
  const int64_t columns = d_bias.elements();
  PartTotalsList<Out> list;
  list.add({sums, columns, columns, d_bias.data<Out>()});
  add_parts(ctx, "bias_gradient", list, parts);
}

}  // namespace hctr::ops::cuda
