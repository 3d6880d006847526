// A block of 256 threads computes a tile of 64 x 64 of one matrix, 4 x 4 per thread, from slices of the operands in
// shared memory. The matrices are small (attention scores of a head) and thousands run concurrently. cuBLAS batches
// have one stride between matrices; heads inside rows need two.
#include "ops/batched_matmul.h"

#include "ops/batched_matmul_rules.h"
#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

constexpr int kTile = 64, kDepth = 16, kThreads = 256, kEach = 4;

/// to[k][i] = element (begin + i, first + k) of op(a), or of its transpose when `swap`; 0 outside. Adjacent threads
/// read adjacent elements.
template <class T>
__device__ void load_slice(MatrixAt<const T> a, int64_t begin, int64_t end, int64_t first, int64_t depth, bool swap,
                           float (&to)[kDepth][kTile + 1]) {
  const int64_t along = swap ? a.column : a.row, deep = swap ? a.row : a.column;
#pragma unroll
  for (int turn = 0; turn < kTile * kDepth / kThreads; ++turn) {
    const int e = static_cast<int>(threadIdx.x) + turn * kThreads;
    const int k = deep == 1 ? e % kDepth : e / kTile, i = deep == 1 ? e / kDepth : e % kTile;
    const bool inside = begin + i < end && first + k < depth;
    to[k][i] = inside ? static_cast<float>(a.data[(begin + i) * along + (first + k) * deep]) : 0.0f;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    batched_matmul_kernel(MatrixBatch<const T> a, MatrixBatch<const T> b, MatrixBatch<T> c, int64_t rows,
                          int64_t columns, int64_t depth, int64_t tiles_down, int64_t tiles_across, float scale) {
  __shared__ float left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int64_t tiles = tiles_down * tiles_across, matrix = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const int64_t row0 = tile / tiles_across * kTile, column0 = tile % tiles_across * kTile;
  const MatrixAt<const T> from_a = a[matrix], from_b = b[matrix];
  const int down = static_cast<int>(threadIdx.x) / (kTile / kEach),
            across = static_cast<int>(threadIdx.x) % (kTile / kEach);
  float sums[kEach][kEach] = {};
  for (int64_t first = 0; first < depth; first += kDepth) {
    load_slice(from_a, row0, rows, first, depth, false, left);
    load_slice(from_b, column0, columns, first, depth, true, right);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float l[kEach], r[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) l[i] = left[k][down + i * (kTile / kEach)];
#pragma unroll
      for (int j = 0; j < kEach; ++j) r[j] = right[k][across + j * (kTile / kEach)];
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] += l[i] * r[j];
    }
    __syncthreads();
  }
  const MatrixAt<T> to = c[matrix];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t row = row0 + down + i * (kTile / kEach), column = column0 + across + j * (kTile / kEach);
      if (row < rows && column < columns) to.data[row * to.row + column] = static_cast<T>(scale * sums[i][j]);
    }
}

}  // namespace

void cuda::batched_matmul(Context& ctx, Matrices a, Transpose of_a, Matrices b, Transpose of_b, float scale,
                          Matrices c) {
  const int64_t depth = of_a == Transpose::no ? a.columns : a.rows;
  const int64_t down = (c.rows + kTile - 1) / kTile, across = (c.columns + kTile - 1) / kTile;
  dispatch_float(c.tensor.dtype(), [&]<class T>() {
    launch(ctx, "batched_matmul", Grid{c.tensor.rows() * c.inner * down * across, kThreads, 0},
           batched_matmul_kernel<T>, matrix_batch<const T>(a, of_a), matrix_batch<const T>(b, of_b),
           matrix_batch<T>(c, Transpose::no), c.rows, c.columns, depth, down, across, scale);
  });
}

}  // namespace hctr::ops
