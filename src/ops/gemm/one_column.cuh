// Matrix-vector GEMMs of a fully connected layer with one output. Each kernel reads its matrix once, at memory
// bandwidth. The library's kernels for these shapes load single elements and are slower.
#pragma once

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"

namespace hctr::ops::cuda {

/// A strided vector in memory.
template <class T>
struct Strided {
  const T* data;
  int64_t step;
  __device__ float operator[](int64_t i) const { return static_cast<float>(data[i * step]); }
  /// Reads min(V, left) elements from `begin` on. `whole`: the elements are contiguous and aligned for one load.
  template <int V>
  __device__ void read(bool whole, int64_t begin, int64_t left, float (&to)[V]) const {
    if (whole) return cuda::read<V>(data + begin, left, to);
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (v < left) to[v] = (*this)[begin + v];
  }
  /// Whether loads of V elements are contiguous and aligned.
  template <int V>
  bool takes_packs() const {
    return step == 1 && reinterpret_cast<uintptr_t>(data) % (sizeof(T) * V) == 0;
  }
};

/// c[i, j] = a[i] b[j].
template <int V, class T, class Out>
__global__ void outer_product_kernel(Strided<T> a, Strided<T> b, bool packs_of_b, View<Out, 2> c) {
  const int64_t rows = c.size(0), columns = c.size(1), per_row = chunks_per_row(columns, V);
  for (int64_t i = thread_index(); i < rows * per_row; i += thread_count()) {
    const Chunk at = chunk_at(i, rows, per_row, V);
    const int64_t left = columns - at.column;
    const float factor = a[at.row];
    float out[V] = {};
    b.template read<V>(packs_of_b, at.column, left, out);
#pragma unroll
    for (int v = 0; v < V; ++v) out[v] *= factor;
    write<V>(c.row(at.row) + at.column, left, out);
  }
}

/// y[i] = the sum of x[i, k] w[k] over k, plus bias. A warp computes R rows at a time; the results do not depend on R.
template <int V, int R, class T>
__global__ void __launch_bounds__(256, 4)
    row_products_kernel(View<const T, 2> x, Strided<T> w, bool packs_of_w, const T* bias, bool relu, View<T, 2> y) {
  start_early();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t rows = x.size(0), columns = x.size(1);
  for (int64_t first = thread_index() / 32 * R; first < rows; first += thread_count() / 32 * R) {
    float sum[R] = {};
    for (int64_t k = lane * V; k < columns; k += 32 * V) {
      Pack<T, V> in[R];
      if (k + V <= columns) {  // one test for all loads, so that the loads overlap
#pragma unroll
        for (int r = 0; r < R; ++r) in[r] = load_pack<V>(x.row(min(first + r, rows - 1)) + k);
      } else {
#pragma unroll
        for (int r = 0; r < R; ++r) in[r] = load_part_of_pack<V>(x.row(min(first + r, rows - 1)) + k, columns - k);
      }
      float by[V] = {};
      w.template read<V>(packs_of_w, k, columns - k, by);
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v) sum[r] += static_cast<float>(in[r].at[v]) * by[v];
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      sum[r] = warp_sum(sum[r]);
      if (bias) sum[r] += static_cast<float>(*bias);
      if (relu && sum[r] < 0) sum[r] = 0;  // a NaN stays NaN
      if (lane == 0 && first + r < rows) y.row(first + r)[0] = static_cast<T>(sum[r]);
    }
  }
}

/// Number of parts of the rows that are summed separately.
inline constexpr int64_t kWeightedParts = 128;

/// sums[part, j] = the sum of x[b, j] d[b] over the rows b of a part. A block processes 32 * V adjacent columns.
template <int V, class T>
__global__ void __launch_bounds__(256) weighted_sums_kernel(View<const T, 2> x, Strided<T> d, float* sums) {
  __shared__ float shared[V][256];
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  const int64_t rows = x.size(0), columns = x.size(1), part = blockIdx.x % kWeightedParts;
  const int64_t per_part = (rows + kWeightedParts - 1) / kWeightedParts, end = min((part + 1) * per_part, rows);
  const int64_t column = (blockIdx.x / kWeightedParts * 32 + thread % 32) * V;
  float sum[V] = {};
  if (column < columns)
#pragma unroll 4
    for (int64_t b = part * per_part + warp; b < end; b += 8) {
      float in[V] = {};
      read<V>(x.row(b) + column, columns - column, in);
      const float factor = d[b];
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] += in[v] * factor;
    }
#pragma unroll
  for (int v = 0; v < V; ++v) shared[v][thread] = sum[v];
  __syncthreads();
  for (int half = 4; half > 0; half /= 2) {
    if (warp < half) {
#pragma unroll
      for (int v = 0; v < V; ++v) shared[v][thread] += shared[v][thread + 32 * half];
    }
    __syncthreads();
  }
  if (warp == 0)
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (column + v < columns) sums[part * columns + column + v] = shared[v][thread];
}

/// y[j] = the sum of sums[part, j] over parts, in order.
template <class Out>
__global__ void sum_parts_kernel(const float* sums, int64_t columns, View<Out, 2> y) {
  for (int64_t j = thread_index(); j < columns; j += thread_count()) {
    float sum = 0;
#pragma unroll 16
    for (int64_t part = 0; part < kWeightedParts; ++part) sum += sums[part * columns + j];
    y.row(j)[0] = static_cast<Out>(sum);
  }
}

template <class T, class Out>
void outer_product(Context& ctx, Strided<T> a, Strided<T> b, View<Out, 2> c) {
  constexpr int V = 16 / sizeof(Out);
  const bool packs = takes_packs<V>(c);
  launch(ctx, "outer_product", grid_for(c.size(0) * chunks_per_row(c.size(1), packs ? V : 1)),
         packs ? outer_product_kernel<V, T, Out> : outer_product_kernel<1, T, Out>, a, b, b.template takes_packs<V>(),
         c);
}

template <int R, class T>
void row_products_by(Context& ctx, View<const T, 2> x, Strided<T> w, const T* bias, bool relu, View<T, 2> y) {
  constexpr int V = 16 / sizeof(T);
  launch(ctx, "row_products", early(grid_for((x.size(0) + R - 1) / R * 32)),
         takes_packs<V>(x) ? row_products_kernel<V, R, T> : row_products_kernel<1, R, T>, x, w,
         w.template takes_packs<V>(), bias, relu, y);
}

template <class T>
void row_products(Context& ctx, View<const T, 2> x, Strided<T> w, const T* bias, bool relu, View<T, 2> y) {
  constexpr int64_t kWarpsAtATime = 64;  // resident warps per multiprocessor; each warp needs four rows
  const bool many = x.size(0) >= 4 * kWarpsAtATime * hctr::cuda::blocks_of_device(1);
  many ? row_products_by<4>(ctx, x, w, bias, relu, y) : row_products_by<1>(ctx, x, w, bias, relu, y);
}

/// y[j] = the sum of x[b, j] d[b] over rows b. `sums`: scratch for kWeightedParts * columns of x.
template <class T, class Out>
void weighted_column_sums(Context& ctx, View<const T, 2> x, Strided<T> d, float* sums, View<Out, 2> y) {
  constexpr int V = 16 / sizeof(T);
  const bool packs = takes_packs<V>(x);
  const int64_t tiles = (chunks_per_row(x.size(1), packs ? V : 1) + 31) / 32;
  launch(ctx, "weighted_column_sums", Grid{tiles * kWeightedParts, 256, 0},
         packs ? weighted_sums_kernel<V, T> : weighted_sums_kernel<1, T>, x, d, sums);
  launch(ctx, "weighted_column_sums", grid_for(x.size(1)), sum_parts_kernel<Out>, sums, x.size(1), y);
}

}  // namespace hctr::ops::cuda
