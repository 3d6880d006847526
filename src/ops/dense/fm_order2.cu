// Kernels of second-order FM interactions. A thread computes V adjacent k of one sample in a loop over the slots. The
// backward kernel loops twice; the second loop hits the cache. Vectors that are not multiples of 16 bytes are staged in
// shared memory, so that global memory is still accessed in packs.
#include "ops/dense/fm_order2.h"

#include "ops/gemm/staged_rows.cuh"

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
               2;  // without a fused multiply-add, the result for a single slot is exactly 0
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

constexpr int kStagedRows = 16;  // rows that a block stages in shared memory
constexpr int64_t kMostStagedBytes = 32 * 1024;

/// Computes y, or dx from dy if kBackward. A block stages kStagedRows samples in shared memory.
template <bool kBackward, class T>
__global__ void fm_order2_staged_kernel(View<const T, 2> x, int slots, int dim, View<T, 2> y, View<const T, 2> dy,
                                        View<T, 2> dx) {
  extern __shared__ uint4 staged_vectors[];
  T* shared = reinterpret_cast<T*>(staged_vectors);
  const int64_t rows = x.size(0);
  const int width = static_cast<int>(cuda::staged_width<T>(x.size(1)));
  for (int64_t first = int64_t{blockIdx.x} * kStagedRows; first < rows; first += int64_t{gridDim.x} * kStagedRows) {
    const int here = static_cast<int>(min(int64_t{kStagedRows}, rows - first));
    cuda::move_rows<true>(x, first, here, shared);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < here * dim; i += static_cast<int>(blockDim.x)) {
      const int row = i / dim, k = i % dim;
      T* vectors = shared + row * width + k;
      float sum = 0, squares = 0;
#pragma unroll 4
      for (int s = 0; s < slots; ++s) {
        const auto v = static_cast<float>(vectors[s * dim]);
        sum += v;
        squares += v * v;
      }
      if constexpr (kBackward) {
        const auto gradient = static_cast<float>(dy.row(first + row)[k]);
#pragma unroll 4
        for (int s = 0; s < slots; ++s)
          vectors[s * dim] = static_cast<T>(gradient * (sum - static_cast<float>(vectors[s * dim])));
      } else {
        // without a fused multiply-add, the result for a single slot is exactly 0
        y.row(first + row)[k] = static_cast<T>(__fsub_rn(__fmul_rn(sum, sum), squares) / 2);
      }
    }
    __syncthreads();
    if constexpr (kBackward) {
      cuda::move_rows<false>(dx, first, here, shared);
      __syncthreads();  // the next samples overwrite shared memory
    }
  }
}

/// Whether to use the staged kernel. Requires that rows are aligned to packs, that vectors are not, and that
/// kStagedRows rows fit in shared memory.
template <class T>
bool takes_staged(View<const T, 2> x, int64_t dim) {
  constexpr int V = 16 / sizeof(T);
  return dim % V != 0 && cuda::takes_packs<V>(x) &&
         cuda::staged_width<T>(x.size(1)) * kStagedRows * static_cast<int64_t>(sizeof(T)) <= kMostStagedBytes;
}

template <bool kBackward, class T>
void launch_staged(Context& ctx, const char* name, View<const T, 2> x, int64_t dim, View<T, 2> y, View<const T, 2> dy,
                   View<T, 2> dx) {
  const int64_t tiles = (x.size(0) + kStagedRows - 1) / kStagedRows;
  const cuda::Grid grid{std::min(tiles, hctr::cuda::blocks_of_device(32)), 256,
                        static_cast<size_t>(cuda::staged_width<T>(x.size(1)) * kStagedRows) * sizeof(T)};
  cuda::launch(ctx, name, grid, fm_order2_staged_kernel<kBackward, T>, x, static_cast<int>(x.size(1) / dim),
               static_cast<int>(dim), y, dy, dx);
}

}  // namespace

void cuda::fm_order2(Context& ctx, Tensor x, Tensor y) {
  const int64_t dim = y.dim(1), slots = x.dim(1) / dim;
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> from = x.view<const T, 2>();
    const View<T, 2> to = y.view<T, 2>();
    if (takes_staged(from, dim)) return launch_staged<false, T>(ctx, "fm_order2", from, dim, to, {}, {});
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
    if (takes_staged(from, dim) && takes_packs<V>(to))
      return launch_staged<true, T>(ctx, "fm_order2_backward", from, dim, {}, gradient, to);
    const bool packs = dim % V == 0 && takes_packs<V>(from) && takes_packs<V>(gradient) && takes_packs<V>(to);
    launch(ctx, "fm_order2_backward", grid_for(to.size(0) * chunks_per_row(dim, packs ? V : 1)),
           packs ? fm_order2_backward_kernel<V, T> : fm_order2_backward_kernel<1, T>, from, gradient, slots, to);
  });
}

}  // namespace hctr::ops
