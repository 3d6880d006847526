// The second stage of sums over rows, for example of a bias gradient: adds the partial sums.
#pragma once

#include <span>

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"

namespace hctr::ops::cuda {

/// out[j * step] = the sum over p of sums[p * stride + j], for p in [0, parts). The order depends on `parts` only.
template <class Out>
struct PartTotals {
  const float* sums;
  int64_t parts, stride, columns;
  Out* out;
  int64_t step = 1;
};

inline constexpr int kTotalsThreads = 1024;

/// A block sums 32 columns. Each of its 32 warps first sums every 32nd part.
template <class Out>
__device__ void total_parts(hctr::cuda::BlockRange range, PartTotals<Out> own) {
  __shared__ float shared[32][33];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t first = range.block * 32, j = first + lane;
  float sum = 0;
  if (j < own.columns)
#pragma unroll 4
    for (int64_t part = warp; part < own.parts; part += 32) sum += own.sums[part * own.stride + j];
  shared[warp][lane] = sum;
  __syncthreads();
  const float total = warp_sum(shared[lane][warp]);  // total of column `warp`
  const int64_t column = first + warp;
  if (lane == 0 && column < own.columns) own.out[column * own.step] = static_cast<Out>(total);
}

template <class Out>
void launch_totals(Context& ctx, const char* name, const PartTotals<Out>& one) {
  hctr::cuda::launch_lockstep<total_parts<Out>, kTotalsThreads>(ctx, name, (one.columns + 31) / 32, one);
}

/// Calls start(launches). The launches run now, or together with deferred launches of other layers
/// (Context::last_launches()). Until the backward pass ends, the results of the launches must not be read, and their
/// inputs must not change.
template <class Start>
void start_last(Context& ctx, const Start& start) {
  Lockstep now(ctx);
  start(ctx.last_launches() ? *ctx.last_launches() : now);
  now.run();
}

/// Computes all totals of a list in one launch, which may be deferred and merged with launches of other layers.
template <class Out>
void add_parts(Context& ctx, const char* name, std::span<const PartTotals<Out>> list) {
  start_last(ctx, [&](Lockstep& launches) {
    for (const PartTotals<Out>& one : list) {
      Context next = launches.next();
      launch_totals<Out>(next, name, one);
    }
  });
}

/// d_bias = the sum over parts of `sums` [parts, columns].
template <class Out>
void add_bias_parts(Context& ctx, const float* sums, int64_t parts, const Tensor& d_bias) {
  const int64_t columns = d_bias.elements();
  const PartTotals<Out> one{sums, parts, columns, columns, d_bias.data<Out>()};
  add_parts<Out>(ctx, "bias_gradient", {&one, 1});
}

}  // namespace hctr::ops::cuda
