// One-pass backward of the cross network over x and dy, for networks whose sums fit in registers: a block computes dx
// for one part of the rows, and the sums over that part.
#pragma once

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"

namespace hctr::ops::cuda {

struct OnePassCross {
  static constexpr int kLayers = 8, kColumns = 4, kWarpRows = 4, kMostThreads = 256;
  static constexpr int kMostRows = kMostThreads / 32 * kWarpRows;
  static bool takes(int64_t layers, int64_t dim) { return layers <= kLayers && dim <= kMostThreads * kColumns; }
  /// One thread per kColumns columns, rounded up to whole warps.
  static int threads(int64_t dim) { return static_cast<int>((dim + 32 * kColumns - 1) / (32 * kColumns)) * 32; }
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

  float w[L][V] = {}, dw[L][V] = {}, db[V] = {}, c_sum = 0;
#pragma unroll
  for (int l = 0; l < L; ++l)
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (l < layers && j < left) w[l][j] = static_cast<float>(weights.w[l][k + j]);

  for (int64_t first = begin; first < end; first += tile_rows) {
    const int64_t mine = first + warp * kRows;
    // Rows past the end of the part repeat the last row.
    const int64_t known = min(mine, end - 1);
    const int after = static_cast<int>(min(end - 1 - known, int64_t{kRows}));
    float dot[kRows] = {};
#pragma unroll 1
    for (int64_t column = lane * V; column < dim; column += 32 * V) {
      Pack<T, V> in[kRows], gradient[kRows];
      if (column + V <= dim) {  // one test for all loads, so that the loads overlap
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
      float scale = 1;
      for (int l = 0; l < layers; ++l) {
        factors[tile_row][l] = scale;
        scale += scale * p[l] + q[l];
      }
      for (int l = layers - 1; l >= 0; --l) {
        factors[tile_row][l] *= c;
        slopes[tile_row][l] = there ? c : 0.0f;
        c += c * p[l];
      }
      for (int l = layers; l < L; ++l) factors[tile_row][l] = 0;
      scales[tile_row] = scale;
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
        const Pack<float, 4> low = *reinterpret_cast<const Pack<float, 4>*>(&factors[r][0]),
                             high = *reinterpret_cast<const Pack<float, 4>*>(&factors[r][4]);
        const float scale = scales[r];
#pragma unroll
        for (int j = 0; j < V; ++j) {
          db[j] += out[j];
          out[j] *= scale;
        }
#pragma unroll
        for (int l = 0; l < L; ++l) {
          const float factor = l < 4 ? low.at[l % 4] : high.at[l % 4];
#pragma unroll
          for (int j = 0; j < V; ++j) {
            dw[l][j] += factor * in[j];
            out[j] += factor * w[l][j];
          }
        }
        if (dx.data != nullptr) write<V>(dx.row(first + r) + k, left, out);
      }
    __syncthreads();  // the next rows overwrite the scalars
  }

  float* sums = parts + blockIdx.x * part_width;
#pragma unroll
  for (int j = 0; j < V; ++j) {
    if (j >= left) break;
#pragma unroll
    for (int l = 0; l < L; ++l)
      if (l < layers) sums[l * dim + k + j] = dw[l][j];
    sums[layers * dim + k + j] = db[j];
  }
  if (thread < layers) sums[(layers + 1) * dim + thread] = c_sum;
}

}  // namespace hctr::ops::cuda
