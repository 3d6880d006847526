// A thread computes V adjacent k of one sample in a loop over its slots. Backward loops twice; in the second loop the
// block's few samples are still in the cache.
#include "ops/fm_order2.h"

#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

template <int V, class T>
__global__ void fm_order2_kernel(View<const T, 2> x, int64_t slots, View<T, 2> y) {
  const int64_t rows = y.size(0), dim = y.size(1), per_row = cuda::chunks_per_row(dim, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = dim - at.column;
    const T* from = x.row(at.row) + at.column;
    float sum[V] = {}, squares[V] = {};
#pragma unroll 4
    for (int64_t s = 0; s < slots; ++s) {
      float v[V] = {};
      cuda::read<V>(from + s * dim, left, v);
#pragma unroll
      for (int j = 0; j < V; ++j) {
        sum[j] += v[j];
        squares[j] += v[j] * v[j];
      }
    }
#pragma unroll
    for (int j = 0; j < V; ++j)
      sum[j] = __fsub_rn(__fmul_rn(sum[j], sum[j]), squares[j]) /
               2;  // without a fused multiply-add one slot gives exactly 0
    cuda::write<V>(y.row(at.row) + at.column, left, sum);
  }
}

template <int V, class T>
__global__ void fm_order2_backward_kernel(View<const T, 2> x, View<const T, 2> dy, int64_t slots, View<T, 2> dx) {
  const int64_t rows = dy.size(0), dim = dy.size(1), per_row = cuda::chunks_per_row(dim, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk at = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = dim - at.column;
    const T* from = x.row(at.row) + at.column;
    T* to = dx.row(at.row) + at.column;
    float sum[V] = {}, gradient[V] = {};
    cuda::read<V>(dy.row(at.row) + at.column, left, gradient);
#pragma unroll 4
    for (int64_t s = 0; s < slots; ++s) {
      float v[V] = {};
      cuda::read<V>(from + s * dim, left, v);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] += v[j];
    }
#pragma unroll 4
    for (int64_t s = 0; s < slots; ++s) {
      float v[V] = {}, out[V];
      cuda::read<V>(from + s * dim, left, v);
#pragma unroll
      for (int j = 0; j < V; ++j) out[j] = gradient[j] * (sum[j] - v[j]);
      cuda::write<V>(to + s * dim, left, out);
    }
  }
}

}  // namespace

void cuda::fm_order2(Context& ctx, Tensor x, Tensor y) {
  const int64_t dim = y.dim(1), slots = x.dim(1) / dim;
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> from = x.view<const T, 2>();
    const View<T, 2> to = y.view<T, 2>();
    const bool packs = dim % V == 0 && takes_packs<V>(from) && takes_packs<V>(to);
    launch(ctx, "fm_order2", grid_for(to.size(0) * chunks_per_row(dim, packs ? V : 1)),
           packs ? fm_order2_kernel<V, T> : fm_order2_kernel<1, T>, from, slots, to);
  });
}

void cuda::fm_order2_backward(Context& ctx, Tensor x, Tensor dy, Tensor dx) {
  const int64_t dim = dy.dim(1), slots = x.dim(1) / dim;
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> from = x.view<const T, 2>(), gradient = dy.view<const T, 2>();
    const View<T, 2> to = dx.view<T, 2>();
    const bool packs = dim % V == 0 && takes_packs<V>(from) && takes_packs<V>(gradient) && takes_packs<V>(to);
    launch(ctx, "fm_order2_backward", grid_for(to.size(0) * chunks_per_row(dim, packs ? V : 1)),
           packs ? fm_order2_backward_kernel<V, T> : fm_order2_backward_kernel<1, T>, from, gradient, slots, to);
  });
}

}  // namespace hctr::ops
