// The last step of a bias's gradient: sums of parts of the rows become the sum of all rows.
#pragma once

#include "ops/element_loops.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops::cuda {

/// d_bias[j] = the sum of sums[., j]: 32 columns a block, whose 32 warps each sum every 32nd part first.
template <class Out>
__global__ void __launch_bounds__(1024)
    bias_totals_kernel(const float* sums, int64_t parts, int64_t columns, Out* d_bias) {
  __shared__ float shared[32][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  float sum = 0;
  if (j < columns)
#pragma unroll 4
    for (int64_t part = warp; part < parts; part += 32) sum += sums[part * columns + j];
  shared[warp][lane] = sum;
  __syncthreads();
  const float total = warp_sum(shared[lane][warp]);  // of column `warp`
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + warp;
  if (lane == 0 && column < columns) d_bias[column] = static_cast<Out>(total);
}

/// d_bias from `sums` [parts, columns], in an order that depends on the number of parts alone.
template <class Out>
void add_bias_parts(Context& ctx, const float* sums, int64_t parts, const Tensor& d_bias) {
  const int64_t columns = d_bias.elements();
  launch(ctx, "bias_gradient", Grid{(columns + 31) / 32, 1024, 0}, bias_totals_kernel<Out>, sums, parts, columns,
         d_bias.data<Out>());
}

}  // namespace hctr::ops::cuda
