// Kernels of weight_multiply. Backward reads dy twice: for dx with kLanes threads per element, and for dw with one
// thread per column and part of the rows. The dw kernels may be deferred and merged with the dw kernels of other
// layers.
#include "ops/dense/weight_multiply.h"

#include "ops/common/element_loops.cuh"
#include "ops/common/part_totals.cuh"
#include "ops/common/row_parts.h"

namespace hctr::ops {
namespace {

constexpr int kLanes = 8;

template <int V, class T>
__global__ void weight_multiply_kernel(View<const T, 2> x, const T* w, int64_t dim, View<T, 2> y) {
  cuda::start_early();
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float out[V] = {};
    cuda::read<V>(w + s.column, left, out);
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (j < left) out[j] *= static_cast<float>(x.row(s.row)[(s.column + j) / dim]);
    cuda::write<V>(y.row(s.row) + s.column, left, out);
  }
}

/// Computes dx with kLanes threads per element. All threads of a warp run the same number of iterations, as warp
/// shuffles require.
template <class T>
__global__ void weight_multiply_dx_kernel(View<const T, 2> dy, const T* w, int64_t dim, View<T, 2> dx) {
  const int64_t slots = dx.size(1), count = dx.size(0) * slots, groups = cuda::thread_count() / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t turns = (count + groups - 1) / groups;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t i = turn * groups + cuda::thread_index() / kLanes;
    const cuda::Chunk at = cuda::chunk_at(min(i, count - 1), dx.size(0), slots, 1);
    const T* from = dy.row(at.row) + at.column * dim;
    float sum = 0;
    for (int64_t k = lane; k < dim; k += kLanes)
      sum += static_cast<float>(from[k]) * static_cast<float>(w[at.column * dim + k]);
#pragma unroll
    for (int half = kLanes / 2; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    if (lane == 0 && i < count) dx.row(at.row)[at.column] = static_cast<T>(sum);
  }
}

/// Writes partial wgrads: parts [part, slots * dim], the sums over one part of the rows.
template <class T>
__device__ void weight_multiply_dw(hctr::cuda::BlockRange range, View<const T, 2> x, View<const T, 2> dy, int64_t dim,
                                   int64_t rows_per_part, int64_t tiles, float* parts) {
  const int64_t part = range.block / tiles, column = range.block % tiles * blockDim.x + threadIdx.x;
  if (column >= dy.size(1)) return;
  const int64_t begin = part * rows_per_part, end = min(begin + rows_per_part, dy.size(0)), slot = column / dim;
  float sum = 0;
#pragma unroll 4
  for (int64_t b = begin; b < end; ++b)
    sum += static_cast<float>(dy.row(b)[column]) * static_cast<float>(x.row(b)[slot]);
  parts[part * dy.size(1) + column] = sum;
}

}  // namespace

void cuda::weight_multiply(Context& ctx, Tensor x, Tensor w, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<T, 2> to = y.view<T, 2>();
    const bool packs = takes_packs<V>(to) && takes_packs<V>(View<const T, 2>{w.data<const T>(), {1, w.elements()}, 0});
    launch(ctx, "weight_multiply", early(grid_for(to.size(0) * chunks_per_row(to.size(1), packs ? V : 1))),
           packs ? weight_multiply_kernel<V, T> : weight_multiply_kernel<1, T>, x.view<const T, 2>(), w.data<const T>(),
           w.dim(1), to);
  });
}

void cuda::weight_multiply_backward(Context& ctx, Tensor x, Tensor w, Tensor dy, Tensor scratch,
                                    std::optional<Tensor> dx, Tensor dw) {
  const int64_t batch = dy.dim(0), columns = dy.dim(1), parts = row_parts(batch), tiles = (columns + 127) / 128;
  dispatch_float(x.dtype(), [&]<class T>() {
    if (dx)
      launch(ctx, "weight_multiply_backward dx", grid_for(kLanes * dx->elements()), weight_multiply_dx_kernel<T>,
             dy.view<const T, 2>(), w.data<const T>(), w.dim(1), dx->view<T, 2>());
    start_last(ctx, [&](Lockstep& launches) {
      Context last = launches.next();
      hctr::cuda::launch_lockstep<weight_multiply_dw<T>, 128>(
          last, "weight_multiply_backward dw", parts * tiles, x.view<const T, 2>(), dy.view<const T, 2>(), w.dim(1),
          (batch + parts - 1) / parts, tiles, scratch.data<float>());
      launch_totals<float>(last, "weight_multiply_backward dw",
                           {scratch.data<float>(), parts, columns, columns, dw.data<float>()});
    });
  });
}

}  // namespace hctr::ops
