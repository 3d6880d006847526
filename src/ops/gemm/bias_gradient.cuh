// The bias gradient fused with an element-wise rule, in one pass. A block reads one part of the rows for some adjacent
// columns, writes d_z, and writes the column sums of its part. Then the partial sums are added in order, so results
// depend on the shape only.
#pragma once

#include <algorithm>
#include <bit>

#include "ops/common/element_loops.cuh"
#include "ops/common/part_totals.cuh"
#include "ops/gemm/bias_gradient_parts.h"

namespace hctr::ops::cuda {

inline constexpr int kBiasThreads = 256;

/// Input and output tensors. For AsItIs, d_z equals d_y, so the kernel writes no d_z.
template <class T>
struct BiasGradients {
  View<const T, 2> y, d_y;
  View<T, 2> d_z;
  float* sums;  ///< [parts, columns]
};

/// The grid: `parts` parts of the rows, each with `tiles` tiles of column_lanes * V columns.
struct BiasTiles {
  int column_lanes;
  int64_t parts, tiles;
};

/// The rule d_z = d_y. Other rules are functors (y, d_y) -> d_z of floats. A rule may also define beside(row, column,
/// left, d_y), which the kernel calls for every pack of V elements. kFromEnd: blocks process rows from last to first.
/// They start with the rows that the preceding kernel wrote last, which are still in L2. They end with the first rows,
/// which are then in L2 for the next kernel.
struct AsItIs {
  static constexpr bool kFromEnd = false;
};

template <class Rule, class T, int V>
inline constexpr bool kHasBeside =
    requires(const Rule& rule, const Pack<T, V>& d_y) { rule.beside(int64_t{}, int64_t{}, int64_t{}, d_y); };

/// Loads min(V, left) adjacent elements; the rest of the pack is 0.
template <int V, class T>
__device__ inline Pack<T, V> load_some(const T* from, int64_t left) {
  return left >= V ? load_pack<V>(from) : load_part_of_pack<V>(from, left);
}

template <int V, class Rule, class T>
__device__ inline void finish_bias_row(const BiasGradients<T>& g, const Rule& rule, int64_t row, int64_t column,
                                       int64_t left, const Pack<T, V>& y, const Pack<T, V>& d_y, float (&sum)[V]) {
  // Call before the store of d_z: the compiler cannot move loads above a store.
  if constexpr (kHasBeside<Rule, T, V>) rule.beside(row, column, left, d_y);
  float d[V];
#pragma unroll
  for (int v = 0; v < V; ++v) {
    d[v] = static_cast<float>(d_y.at[v]);
    if constexpr (!std::is_same_v<Rule, AsItIs>)  // sums the stored, rounded values
      d[v] = static_cast<float>(static_cast<T>(rule(static_cast<float>(y.at[v]), d[v])));
    sum[v] += d[v];
  }
  if constexpr (!std::is_same_v<Rule, AsItIs>) write<V>(g.d_z.row(row) + column, left, d);
}

/// Sums the rows `first`, `first` + `step` and so on. Loads four rows before it uses the first of them, so that the
/// loads overlap. For a rule with beside(), which has loads of its own, one row at a time suffices. kWhole: at least V
/// columns remain. This is a template parameter, because a branch around each load would serialize the loads.
template <int V, bool kWhole, class Rule, class T>
__device__ inline void sum_bias_rows(const BiasGradients<T>& g, const Rule& rule, int64_t first, int64_t step,
                                     int64_t column, float (&sum)[V]) {
  constexpr int kRows = kHasBeside<Rule, T, V> ? 1 : 4;
  constexpr bool kReadsY = !std::is_same_v<Rule, AsItIs>;
  const int64_t left = kWhole ? V : g.d_y.size(1) - column, end = g.d_y.size(0);
  const auto row = [end](int64_t number) { return Rule::kFromEnd ? end - 1 - number : number; };
  for (; first + (kRows - 1) * step < end; first += kRows * step) {
    Pack<T, V> y[kRows], d[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if constexpr (kReadsY) y[r] = load_some<V>(g.y.row(row(first + r * step)) + column, left);
      d[r] = load_some<V>(g.d_y.row(row(first + r * step)) + column, left);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) finish_bias_row<V>(g, rule, row(first + r * step), column, left, y[r], d[r], sum);
  }
  for (; first < end; first += step) {
    Pack<T, V> y{};
    if constexpr (kReadsY) y = load_some<V>(g.y.row(row(first)) + column, left);
    finish_bias_row<V>(g, rule, row(first), column, left, y, load_some<V>(g.d_y.row(row(first)) + column, left), sum);
  }
}

template <int V, class Rule, class T>
__global__ void __launch_bounds__(kBiasThreads)
    bias_gradient_kernel(BiasGradients<T> g, const __grid_constant__ Rule rule, BiasTiles tiling) {
  start_early();
  __shared__ float shared[V][kBiasThreads];
  // Blocks with adjacent indices process different tiles of the same rows.
  const int64_t columns = g.d_y.size(1), part = blockIdx.x / tiling.tiles, tile = blockIdx.x % tiling.tiles;
  const int thread = static_cast<int>(threadIdx.x), lanes = tiling.column_lanes, row_lanes = kBiasThreads / lanes;
  const int row_lane = thread / lanes;
  const int64_t column = (tile * lanes + thread % lanes) * V;
  float sum[V] = {};
  const int64_t first = part * row_lanes + row_lane, step = tiling.parts * row_lanes;
  if (column + V <= columns)
    sum_bias_rows<V, true>(g, rule, first, step, column, sum);
  else if (column < columns)
    sum_bias_rows<V, false>(g, rule, first, step, column, sum);
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

/// d_z = rule(y, d_y), rounded to T, and d_bias = the column sums of d_z. `packs`: whether the additional tensors of
/// the rule are aligned for 16-byte packs.
template <class T, class Rule>
void launch_bias_gradient(Context& ctx, const char* name, const Rule& rule, bool packs, const Tensor& y,
                          const Tensor& d_y, const Tensor& d_z, const Tensor& d_bias, const Tensor& scratch) {
  float* sums = scratch.data<float>();
  const BiasGradients<T> g{y.view<const T, 2>(), d_y.view<const T, 2>(), d_z.view<T, 2>(), sums};
  constexpr int V = 16 / sizeof(T);
  packs = packs && takes_packs<V>(g.y) && takes_packs<V>(g.d_y) && takes_packs<V>(g.d_z);
  const int64_t rows = d_y.dim(0), columns = d_y.dim(1), chunks = chunks_per_row(columns, packs ? V : 1);
  if (chunks == 0) return;
  BiasTiles tiling;
  tiling.column_lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(chunks, kBiasThreads))));
  const int64_t four_rows_each = 4 * (kBiasThreads / tiling.column_lanes);
  tiling.parts = std::clamp<int64_t>((rows + four_rows_each - 1) / four_rows_each, 1, kMostRowParts);
  tiling.tiles = (chunks + tiling.column_lanes - 1) / tiling.column_lanes;
  launch(ctx, name, early({tiling.tiles * tiling.parts, kBiasThreads, 0}),
         packs ? bias_gradient_kernel<V, Rule, T> : bias_gradient_kernel<1, Rule, T>, g, rule, tiling);
  if (d_bias.dtype() == d_y.dtype()) return add_bias_parts<T>(ctx, sums, tiling.parts, d_bias);
  if constexpr (sizeof(T) == 2) add_bias_parts<float>(ctx, sums, tiling.parts, d_bias);
}

}  // namespace hctr::ops::cuda
