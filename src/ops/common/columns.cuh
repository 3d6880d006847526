// The kernels of ops/common/columns.h. A sum over rows takes two kernels: the first kernel sums each part of the rows,
// the second kernel adds the parts in order. With many parts, even a tensor with few columns occupies the whole GPU.
#pragma once

#include "ops/common/columns.h"
#include "ops/common/element_loops.cuh"
#include "ops/common/valid_rows.h"

namespace hctr::ops::cuda {

/// A block of 256 threads sums kColumns adjacent columns over one part of the rows. Each thread sums every kLanes-th
/// row of one column; then a tree reduction adds the sums of the lanes. If `state` is given, rows without a sample are
/// excluded.
template <int kColumns, class F>
__global__ void column_parts_kernel(const StepState* state, int64_t rows, int64_t columns, F f, float* parts) {
  constexpr int kLanes = 256 / kColumns;
  __shared__ float sums[2][kLanes][kColumns + 1];
  const int column = static_cast<int>(threadIdx.x) % kColumns, lane = static_cast<int>(threadIdx.x) / kColumns;
  const int64_t j = blockIdx.x / kRowParts * kColumns + column, part = blockIdx.x % kRowParts;
  const int64_t length = (rows + kRowParts - 1) / kRowParts, valid = state ? valid_rows(*state, rows) : rows;
  const int64_t end = min((part + 1) * length, valid);
  float first = 0, second = 0;
  if (j < columns)
    for (int64_t b = part * length + lane; b < end; b += kLanes) {
      const Pair<float> next = f(b, j);
      first += next.first;
      second += next.second;
    }
  sums[0][lane][column] = first;
  sums[1][lane][column] = second;
  __syncthreads();
#pragma unroll
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) {
      sums[0][lane][column] += sums[0][lane + half][column];
      sums[1][lane][column] += sums[1][lane + half][column];
    }
    __syncthreads();
  }
  if (lane == 0 && j < columns) {
    parts[part * 2 * columns + j] = sums[0][0][column];
    parts[part * 2 * columns + columns + j] = sums[1][0][column];
  }
}

template <class Out>
__global__ void column_totals_kernel(const float* parts, int64_t columns, Out* first, Out* second) {
  for (int64_t j = thread_index(); j < 2 * columns; j += thread_count()) {
    float sum = 0;
#pragma unroll 8
    for (int64_t part = 0; part < kRowParts; ++part) sum += parts[part * 2 * columns + j];
    if (j < columns)
      first[j] = sum;
    else
      second[j - columns] = sum;
  }
}

/// Writes the sums of f(b, j) over the rows b to first[j] and second[j]. T is the element type that f reads.
template <class T, class F>
void sum_columns(Context& ctx, const char* name, const StepState* state, int64_t rows, int64_t columns, const F& f,
                 Tensor scratch, float* first, float* second) {
  constexpr int kColumns = 32 / sizeof(T);
  float* parts = scratch.data<float>();
  launch(ctx, name, Grid{(columns + kColumns - 1) / kColumns * kRowParts, 256, 0}, column_parts_kernel<kColumns, F>,
         state, rows, columns, f, parts);
  launch(ctx, "column_totals", grid_for(2 * columns), column_totals_kernel<float>, parts, columns, first, second);
}

template <int V, class F, class T, int N>
__global__ void map_columns_kernel(F f, Inputs<T, N> x, View<T, 2> y) {
  if constexpr (requires { f.prepare(); }) f.prepare();
  const int64_t rows = y.size(0), columns = y.size(1), per_row = chunks_per_row(columns, V);
  for (int64_t i = thread_index(); i < rows * per_row; i += thread_count()) {
    const Chunk s = chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float in[N][V] = {}, out[V] = {};
#pragma unroll
    for (int n = 0; n < N; ++n) read<V>(x.at[n].row(s.row) + s.column, left, in[n]);
#pragma unroll
    for (int k = 0; k < V; ++k)
      if (k < left) {
        if constexpr (N == 1) out[k] = f(s.row, s.column + k, in[0][k]);
        if constexpr (N == 2) out[k] = f(s.row, s.column + k, in[0][k], in[1][k]);
      }
    write<V>(y.row(s.row) + s.column, left, out);
  }
}

/// y(b, j) = f(b, j, x_0(b, j), ...). If f has prepare(), each thread calls prepare() once; prepare() may read device
/// memory.
template <class F, class T, int N>
void map_columns(Context& ctx, const char* name, const F& f, const Inputs<T, N>& x, View<T, 2> y) {
  constexpr int V = 16 / sizeof(T);
  bool packs = takes_packs<V>(y);
  for (const auto& view : x.at) packs = packs && takes_packs<V>(view);
  if (packs)
    launch(ctx, name, grid_for(y.size(0) * chunks_per_row(y.size(1), V)), map_columns_kernel<V, F, T, N>, f, x, y);
  else
    launch(ctx, name, grid_for(y.size(0) * y.size(1)), map_columns_kernel<1, F, T, N>, f, x, y);
}

}  // namespace hctr::ops::cuda
