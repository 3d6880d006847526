// One pass: a block reads a part of the rows of some adjacent columns, writes d_z and the sums of its part. The last
// block to finish with these columns adds the parts up, in their order, so results do not depend on which block that
// is.
#include "ops/bias_gradient.h"

#include <algorithm>
#include <bit>

#include "ops/bias_gradient_parts.h"
#include "ops/element_loops.cuh"
#include "ops/part_totals.cuh"

namespace hctr::ops {
namespace {

constexpr int kBiasThreads = 256;

/// What is read and written. Without a mask d_z is d_y and is not written.
template <class T>
struct BiasGradients {
  float factor;
  View<const T, 2> y, d_y;
  View<T, 2> d_z;
  float* sums;  ///< [parts, columns]
};

/// Blocks of a grid: `parts` of the rows for each tile of column_lanes * V columns.
struct BiasTiles {
  int column_lanes;
  int64_t parts;
};

/// V adjacent elements, or `left` when that is less.
template <int V, class T>
__device__ inline cuda::Pack<T, V> load_some(const T* from, int64_t left) {
  return left >= V ? cuda::load_pack<V>(from) : cuda::load_part_of_pack<V>(from, left);
}

template <bool kMask, int V, class T>
__device__ inline void finish_bias_row(const BiasGradients<T>& g, int64_t row, int64_t column, int64_t left,
                                       const cuda::Pack<T, V>& y, const cuda::Pack<T, V>& d_y, float (&sum)[V]) {
  float d[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    d[v] = static_cast<float>(d_y.at[v]);
    if constexpr (kMask)  // the sum is of what is stored
      d[v] = static_cast<float>(static_cast<T>(relu_gradient(g.factor, static_cast<float>(y.at[v]), d[v])));
    sum[v] += d[v];
  }
  if constexpr (kMask) cuda::write<V>(g.d_z.row(row) + column, left, d);
}

/// Rows first, first + step, ... Four are loaded before any is used, so that many loads are under way.
template <bool kMask, int V, class T>
__device__ inline void sum_bias_rows(const BiasGradients<T>& g, int64_t first, int64_t step, int64_t column,
                                     float (&sum)[V]) {
  constexpr int kRows = 4;
  const int64_t left = g.d_y.size(1) - column, end = g.d_y.size(0);
  for (; first + (kRows - 1) * step < end; first += kRows * step) {
    cuda::Pack<T, V> y[kRows], d[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kMask) y[r] = load_some<V>(g.y.row(first + r * step) + column, left);
      d[r] = load_some<V>(g.d_y.row(first + r * step) + column, left);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) finish_bias_row<kMask, V>(g, first + r * step, column, left, y[r], d[r], sum);
  }
  for (; first < end; first += step) {
    cuda::Pack<T, V> y{};
    if constexpr (kMask) y = load_some<V>(g.y.row(first) + column, left);
    finish_bias_row<kMask, V>(g, first, column, left, y, load_some<V>(g.d_y.row(first) + column, left), sum);
  }
}

template <bool kMask, int V, class T>
__global__ void __launch_bounds__(kBiasThreads) bias_gradient_kernel(BiasGradients<T> g, BiasTiles tiling) {
  cuda::start_early();
  __shared__ float shared[V][kBiasThreads];
  const int64_t columns = g.d_y.size(1), tile = blockIdx.x / tiling.parts, part = blockIdx.x % tiling.parts;
  const int thread = static_cast<int>(threadIdx.x), lanes = tiling.column_lanes, row_lanes = kBiasThreads / lanes;
  const int row_lane = thread / lanes;
  const int64_t column = (tile * lanes + thread % lanes) * V;
  float sum[V] = {};
  if (column < columns) sum_bias_rows<kMask, V>(g, part * row_lanes + row_lane, tiling.parts * row_lanes, column, sum);
#pragma unroll
  for (int v = 0; v < V; ++v) shared[v][thread] = sum[v];
  __syncthreads();
  for (int half = row_lanes / 2; half > 0; half /= 2) {
    if (row_lane < half) {
#pragma unroll
      for (int v = 0; v < V; ++v) shared[v][thread] += shared[v][thread + half * lanes];
    }
    __syncthreads();
  }
  if (row_lane == 0)
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (column + v < columns) g.sums[part * columns + column + v] = shared[v][thread];
}

template <bool kMask, class T, class Out>
void launch_bias_gradient(Context& ctx, float factor, const Tensor& y, const Tensor& d_y, const Tensor& d_z,
                          const Tensor& d_bias, const Tensor& scratch) {
  float* sums = scratch.data<float>();
  const BiasGradients<T> g{factor, y.view<const T, 2>(), d_y.view<const T, 2>(), d_z.view<T, 2>(), sums};
  constexpr int V = 16 / sizeof(T);
  const bool packs = cuda::takes_packs<V>(g.y) && cuda::takes_packs<V>(g.d_y) && cuda::takes_packs<V>(g.d_z);
  const int64_t rows = d_y.dim(0), columns = d_y.dim(1), chunks = cuda::chunks_per_row(columns, packs ? V : 1);
  if (chunks == 0) return;
  BiasTiles tiling;
  tiling.column_lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(chunks, kBiasThreads))));
  const int64_t four_rows_each = 4 * (kBiasThreads / tiling.column_lanes);
  tiling.parts = std::clamp<int64_t>((rows + four_rows_each - 1) / four_rows_each, 1, kMostRowParts);
  const int64_t tiles = (chunks + tiling.column_lanes - 1) / tiling.column_lanes;
  cuda::launch(ctx, kMask ? "relu_bias_gradient" : "bias_gradient", cuda::early({tiles * tiling.parts, kBiasThreads, 0}),
               packs ? bias_gradient_kernel<kMask, V, T> : bias_gradient_kernel<kMask, 1, T>, g, tiling);
  cuda::add_bias_parts<Out>(ctx, sums, tiling.parts, d_bias);
}

template <bool kMask>
void bias_gradient_of_type(Context& ctx, float factor, const Tensor& y, const Tensor& d_y, const Tensor& d_z,
                           const Tensor& d_bias, const Tensor& scratch) {
  dispatch_float(d_y.dtype(), [&]<class T>() {
    if (d_bias.dtype() == d_y.dtype())
      return launch_bias_gradient<kMask, T, T>(ctx, factor, y, d_y, d_z, d_bias, scratch);
    if constexpr (sizeof(T) == 2) launch_bias_gradient<kMask, T, float>(ctx, factor, y, d_y, d_z, d_bias, scratch);
  });
}

}  // namespace

void cuda::bias_gradient(Context& ctx, Tensor d_z, Tensor d_bias, Tensor scratch) {
  bias_gradient_of_type<false>(ctx, 1, d_z, d_z, d_z, d_bias, scratch);
}

void cuda::relu_bias_gradient(Context& ctx, float factor, Tensor y, Tensor d_y, Tensor d_z, Tensor d_bias,
                              Tensor scratch) {
  bias_gradient_of_type<true>(ctx, factor, y, d_y, d_z, d_bias, scratch);
}

}  // namespace hctr::ops
