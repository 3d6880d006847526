// Kernels of sums along one axis. Axis 0: a block sums a few columns over all rows. Middle axis: a thread sums the
// slots of one column. Last axis: a warp sums the elements of a row.
#include "ops/common/reduce_axis.h"

#include "ops/common/axis_rule.h"
#include "ops/common/element_loops.cuh"
#include "ops/common/reduce.cuh"

namespace hctr::ops {
namespace {

/// Columns per block: 32 bytes of a row, the smallest memory transaction.
template <class T>
inline constexpr int kSumColumns = 32 / sizeof(T);

/// A block of 1024 threads sums kColumns adjacent columns over all rows. Each thread sums every kLanes-th row of one
/// column; then a tree reduction adds the sums of the lanes.
template <class T, class Out>
__global__ void sum_rows_kernel(View<const T, 2> x, float factor, Out* y) {
  constexpr int kColumns = kSumColumns<T>, kLanes = 1024 / kColumns;
  __shared__ float sums[kLanes][kColumns + 1];
  const int column = static_cast<int>(threadIdx.x) % kColumns, lane = static_cast<int>(threadIdx.x) / kColumns;
  const int64_t j = static_cast<int64_t>(blockIdx.x) * kColumns + column;
  float sum = 0;
  if (j < x.size(1)) {
#pragma unroll 4
    for (int64_t b = lane; b < x.size(0); b += kLanes) sum += static_cast<float>(x.row(b)[j]);
  }
  sums[lane][column] = sum;
  __syncthreads();
#pragma unroll
  for (int half = kLanes / 2; half > 0; half /= 2) {
    if (lane < half) sums[lane][column] += sums[lane + half][column];
    __syncthreads();
  }
  if (lane == 0 && j < x.size(1)) y[j] = static_cast<Out>(factor * sums[0][column]);
}

template <class T, class Out>
void launch_sum_rows(Context& ctx, const char* name, View<const T, 2> x, float factor, Out* y) {
  cuda::launch(ctx, name, cuda::Grid{(x.size(1) + kSumColumns<T> - 1) / kSumColumns<T>, 1024, 0},
               sum_rows_kernel<T, Out>, x, factor, y);
}

/// Sums x [b, n, v] over n into y [b, v].
template <int V, class T>
__global__ void sum_slots_kernel(View<const T, 2> x, int64_t slots, float factor, View<T, 2> y) {
  const int64_t rows = y.size(0), width = y.size(1), per_row = cuda::chunks_per_row(width, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = width - s.column;
    float sum[V] = {};
#pragma unroll 4
    for (int64_t n = 0; n < slots; ++n) {
      float next[V] = {};
      cuda::read<V>(x.row(s.row) + n * width + s.column, left, next);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] += next[j];
    }
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] *= factor;
    cuda::write<V>(y.row(s.row) + s.column, left, sum);
  }
}

/// Sums x [b, n, v] over v into y [b, n], with one warp per element of y.
template <class T>
__global__ void sum_within_kernel(View<const T, 2> x, int64_t width, float factor, View<T, 2> y) {
  const int64_t count = y.size(0) * y.size(1), warps = cuda::thread_count() / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t i = cuda::thread_index() / 32; i < count; i += warps) {
    const cuda::Chunk at = cuda::chunk_at(i, y.size(0), y.size(1), 1);
    const T* from = x.row(at.row) + at.column * width;
    float sum = 0;
#pragma unroll 4
    for (int64_t c = lane; c < width; c += 32) sum += static_cast<float>(from[c]);
    sum = cuda::warp_sum(sum);
    if (lane == 0) y.row(at.row)[at.column] = static_cast<T>(factor * sum);
  }
}

template <int V, class T>
__global__ void spread_axis_kernel(View<const T, 2> dy, AxisRule rule, float factor, View<T, 2> dx) {
  const int64_t rows = dx.size(0), columns = dx.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    const T* source = dy.row(rule.over_rows ? 0 : s.row);
    float out[V] = {};
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (j < left) out[j] = factor * static_cast<float>(source[rule.column(s.column + j)]);
    cuda::write<V>(dx.row(s.row) + s.column, left, out);
  }
}

}  // namespace

void cuda::sum_axis(Context& ctx, Tensor x, int axis, float factor, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    const View<const T, 2> from = x.matrix<const T>();
    const View<T, 2> to = y.matrix<T>();
    constexpr int V = 16 / sizeof(T);
    if (axis == 0) {
      launch_sum_rows<T>(ctx, "sum_axis", {from.data, {x.rows(), y.elements()}, x.row_stride()}, factor, to.data);
    } else if (axis == x.rank() - 1) {
      launch(ctx, "sum_axis", grid_for(32 * to.size(0) * to.size(1)), sum_within_kernel<T>, from, x.dim(axis), factor,
             to);
    } else if (takes_packs<V>(from) && takes_packs<V>(to) && x.dim(2) % V == 0) {
      launch(ctx, "sum_axis", grid_for(to.size(0) * chunks_per_row(to.size(1), V)), sum_slots_kernel<V, T>, from,
             x.dim(1), factor, to);
    } else {
      launch(ctx, "sum_axis", grid_for(to.size(0) * to.size(1)), sum_slots_kernel<1, T>, from, x.dim(1), factor, to);
    }
  });
}

void cuda::spread_axis(Context& ctx, Tensor dy, int axis, float factor, Tensor dx) {
  const AxisRule rule(dx.shape(), axis);
  dispatch_float(dx.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<T, 2> to = dx.matrix<T>();
    const bool packs = takes_packs<V>(to);
    launch(ctx, "spread_axis", grid_for(to.size(0) * chunks_per_row(to.size(1), packs ? V : 1)),
           packs ? spread_axis_kernel<V, T> : spread_axis_kernel<1, T>, dy.matrix<const T>(), rule, factor, to);
  });
}

void cuda::sum_rows(Context& ctx, Tensor x, Tensor sums) {
  dispatch_float(x.dtype(), [&]<class T>() {
    const View<const T, 2> from = x.view<const T, 2>();
    if (sums.dtype() == x.dtype()) return launch_sum_rows<T>(ctx, "sum_rows", from, 1, sums.data<T>());
    if constexpr (sizeof(T) == 2) launch_sum_rows<T>(ctx, "sum_rows", from, 1, sums.data<float>());
  });
}

}  // namespace hctr::ops
