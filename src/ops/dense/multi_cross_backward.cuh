// The backward pass of the cross network. One-pass backward over x and dy, for networks whose sums fit in registers: a
// block computes dx for one part of the rows, and the sums over that part.
#pragma once

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"

namespace hctr::ops::cuda {

/// The samples of one iteration of a warp. A sample past the end repeats the last sample and is not written.
struct Turn {
  int64_t first, rows;
  __device__ int64_t row(int r) const { return min(first + r, rows - 1); }
  __device__ bool there(int r) const { return first + r < rows; }
};

/// The scalars of the backward pass, by sample and layer.
struct CrossScalars {
  float *slopes, *gradients;  ///< slopes: c_l s_l; gradients: c_l
};

/// Lane r < R: computes the scalars of sample r from its dot product of x and dy, and returns s_L. `factors` [row,
/// layer]: receives c_l s_l.
template <int R>
__device__ __forceinline__ float write_scalars(const Turn& at, int layers, const float* q, const float* products,
                                               const float (&dot)[R], float* factors, const CrossScalars& to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float scale = 1;
  if (lane < R) {  // lane r: the scalars of sample r
    const float* p = products + at.row(lane) * layers;
    for (int l = 0; l < layers; ++l) {
      factors[lane * layers + l] = scale;
      scale += scale * p[l] + q[l];
    }
    float c = 0;
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (r == lane) c = dot[r];
    for (int l = layers - 1; l >= 0; --l) {
      const float slope = factors[lane * layers + l] * c;
      factors[lane * layers + l] = slope;
      if (at.there(lane)) {
        to.slopes[(at.first + lane) * layers + l] = slope;
        to.gradients[(at.first + lane) * layers + l] = c;
      }
      c += c * p[l];
    }
  }
  return scale;
}

struct OnePassCross {
  static constexpr int kLayers = 8, kColumns = 4, kWarpRows = 4, kMostThreads = 256;
  static constexpr int kMostRows = kMostThreads / 32 * kWarpRows;
  static bool takes(int64_t layers, int64_t dim) { return layers <= kLayers && dim <= kMostThreads * kColumns; }
  /// One thread per kColumns columns, rounded up to whole warps.
  static int threads(int64_t dim) { return static_cast<int>((dim + 32 * kColumns - 1) / (32 * kColumns)) * 32; }
};

/// A lane's partial sums of the dot products of x and dy, for kWarpRows rows from row `known` on. Rows past `known` +
/// `after` repeat row `known` + `after`.
template <class T>
__device__ __forceinline__ void multiply_rows(const View<const T, 2>& x, const View<const T, 2>& dy, int64_t known,
                                              int after, float (&dot)[OnePassCross::kWarpRows]) {
  constexpr int V = OnePassCross::kColumns, kRows = OnePassCross::kWarpRows;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t dim = x.size(1);
#pragma unroll 1
  for (int64_t column = lane * V; column < dim; column += 32 * V) {
    Pack<T, V> in[kRows], gradient[kRows];
    if (column + V <= dim) {  // one test for all loads, so that they run concurrently
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        in[r] = *reinterpret_cast<const Pack<T, V>*>(x.row(known + min(r, after)) + column);
        gradient[r] = *reinterpret_cast<const Pack<T, V>*>(dy.row(known + min(r, after)) + column);
      }
    } else {
#pragma unroll
      for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int j = 0; j < V; ++j) {
          const bool there = column + j < dim;
          in[r].at[j] = there ? x.row(known + min(r, after))[column + j] : static_cast<T>(0.0f);
          gradient[r].at[j] = there ? dy.row(known + min(r, after))[column + j] : static_cast<T>(0.0f);
        }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int j = 0; j < V; ++j) dot[r] += static_cast<float>(in[r].at[j]) * static_cast<float>(gradient[r].at[j]);
  }
}

/// Computes the scalars of one row, and returns s_L. `c`: the dot product of x and dy; `p`: the scalars p_l; `there`:
/// whether the row exists. `factors` and `slopes`: [layers], see cross_one_pass_kernel().
__device__ __forceinline__ float row_scalars(int layers, const float* p, const float* q, float c, bool there,
                                             float (&factors)[OnePassCross::kLayers],
                                             float (&slopes)[OnePassCross::kLayers]) {
  float scale = 1;
  for (int l = 0; l < layers; ++l) {
    factors[l] = scale;
    scale += scale * p[l] + q[l];
  }
  for (int l = layers - 1; l >= 0; --l) {
    factors[l] *= c;
    slopes[l] = there ? c : 0.0f;
    c += c * p[l];
  }
  for (int l = layers; l < OnePassCross::kLayers; ++l) factors[l] = 0;
  return scale;
}

/// A thread's columns, from column k on: the weights, and the sums over the rows of the block.
struct CrossColumns {
  static constexpr int L = OnePassCross::kLayers, V = OnePassCross::kColumns;
  float w[L][V] = {}, dw[L][V] = {}, db[V] = {};

  template <class T>
  __device__ __forceinline__ void load(const T* const* weights, int layers, int64_t k, int64_t left) {
#pragma unroll
    for (int l = 0; l < L; ++l)
#pragma unroll
      for (int j = 0; j < V; ++j)
        if (l < layers && j < left) w[l][j] = static_cast<float>(weights[l][k + j]);
  }
  /// Adds a row of x to the sums. On entry, `d_row` is the row of dy; on return, the row of dx. `factors` [L] and
  /// `scale`: see cross_one_pass_kernel().
  __device__ __forceinline__ void add_row(const float (&factors)[L], float scale, const float (&in)[V],
                                          float (&d_row)[V]) {
    const Pack<float, 4> low = *reinterpret_cast<const Pack<float, 4>*>(&factors[0]),
                         high = *reinterpret_cast<const Pack<float, 4>*>(&factors[4]);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      db[j] += d_row[j];
      d_row[j] *= scale;
    }
#pragma unroll
    for (int l = 0; l < L; ++l) {
      const float factor = l < 4 ? low.at[l % 4] : high.at[l % 4];
#pragma unroll
      for (int j = 0; j < V; ++j) {
        dw[l][j] += factor * in[j];
        d_row[j] += factor * w[l][j];
      }
    }
  }
  __device__ __forceinline__ void write_sums(int layers, int64_t dim, int64_t k, int64_t left, float* sums) const {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if (j >= left) break;
#pragma unroll
      for (int l = 0; l < L; ++l)
        if (l < layers) sums[l * dim + k + j] = dw[l][j];
      sums[layers * dim + k + j] = db[j];
    }
  }
};

/// Computes dx unless dx is null. Block p also computes three sums over part p of the rows: of (c_l s_l) x, of dy and
/// of c_l (multi_cross_layout.h). A block processes a few rows at a time: each warp computes the scalars of its rows;
/// then each thread loops over the block's rows for its columns. Rows are multiples of 16 bytes.
template <class T, class Pointers>
// at most 128 registers, so that four blocks of 128 threads fit
__global__ void __launch_bounds__(OnePassCross::kMostThreads, 2)
    cross_one_pass_kernel(View<const T, 2> x, const __grid_constant__ Pointers weights, const float* q,
                          const float* products, View<const T, 2> dy, int64_t rows_per_part, int64_t part_width,
                          float* parts, View<T, 2> dx) {
  constexpr int L = OnePassCross::kLayers, V = OnePassCross::kColumns, kRows = OnePassCross::kWarpRows;
  __shared__ alignas(16) float factors[OnePassCross::kMostRows][L];  // c_l s_l; 0 past the last layer
  __shared__ float slopes[OnePassCross::kMostRows][L];               // c_l; 0 past the last row
  __shared__ float scales[OnePassCross::kMostRows];                  // s_L
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32, layers = weights.layers;
  const int tile_rows = static_cast<int>(blockDim.x) / 32 * kRows;
  const int64_t dim = x.size(1), begin = blockIdx.x * rows_per_part, end = min(begin + rows_per_part, x.size(0));
  const int64_t k = int64_t{thread} * V, left = dim - k;

  CrossColumns columns;
  columns.load(weights.w, layers, k, left);
  float c_sum = 0;
  for (int64_t first = begin; first < end; first += tile_rows) {
    const int64_t mine = first + warp * kRows;
    // Rows past the end of the part repeat the last row.
    const int64_t known = min(mine, end - 1);
    const int after = static_cast<int>(min(end - 1 - known, int64_t{kRows}));
    float dot[kRows] = {};
    multiply_rows(x, dy, known, after, dot);
    float c = 0;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float sum = warp_sum(dot[r]);
      if (lane == r) c = sum;
    }
    if (lane < kRows) {  // lane r: the scalars of row r
      const int tile_row = warp * kRows + lane;
      const bool there = mine + lane < end;
      const float* p = products + min(mine + lane, end - 1) * layers;
      scales[tile_row] = row_scalars(layers, p, q, c, there, factors[tile_row], slopes[tile_row]);
    }
    __syncthreads();
    if (thread < layers)
      for (int r = 0; r < tile_rows; ++r) c_sum += slopes[r][thread];
    const int here = static_cast<int>(min(int64_t{tile_rows}, end - first));
    if (left > 0)
#pragma unroll 2
      for (int r = 0; r < here; ++r) {
        float in[V] = {}, out[V] = {};
        read<V>(x.row(first + r) + k, left, in);
        read<V>(dy.row(first + r) + k, left, out);
        columns.add_row(factors[r], scales[r], in, out);
        if (dx.data != nullptr) write<V>(dx.row(first + r) + k, left, out);
      }
    __syncthreads();  // the next rows overwrite the scalars
  }

  float* const sums = parts + blockIdx.x * part_width;
  columns.write_sums(layers, dim, k, left, sums);
  if (thread < layers) sums[(layers + 1) * dim + thread] = c_sum;
}

}  // namespace hctr::ops::cuda
