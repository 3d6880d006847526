// Each part is read and written once, at the speed of memory. Forward, a warp has kRows rows, for which it loads each
// weight once. Backward, a thread keeps the weights of its columns and goes through rows.
#include "ops/concat_linear.h"

#include "ops/element_loops.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

constexpr int kConcatLinearRows = 4;

template <class T>
struct ConcatPart {
  View<const T, 2> x;
  const T* w;
  int64_t w_step;
  bool packs, packs_of_w;
};

template <class T>
struct ConcatParts {
  ConcatPart<T> at[kMostConcatParts];
  int count;
};

template <class T>
constexpr int kConcatPack = 16 / sizeof(T);

/// V weights, or `left` of them when that is less. `whole`: they can be loaded as one.
template <int V, class T>
__device__ void read_weights(const T* w, int64_t step, bool whole, int64_t left, float (&to)[V]) {
  if (whole) return cuda::read<V>(w, left, to);
#pragma unroll
  for (int v = 0; v < V; ++v)
    if (v < left) to[v] = static_cast<float>(w[v * step]);
}

/// Adds the products of one part's rows first, first + 1, ... to the sums of this lane. Rows past the end repeat the
/// last one.
template <int V, class T>
__device__ void add_products(const ConcatPart<T>& part, int64_t first, int lane, float (&sum)[kConcatLinearRows]) {
  const int64_t last = part.x.size(0) - 1, columns = part.x.size(1);
  for (int64_t k = lane * V; k < columns; k += 32 * V) {
    cuda::Pack<T, V> in[kConcatLinearRows];
    if (k + V <= columns) {  // one test for all loads, so that they are under way at the same time
#pragma unroll
      for (int r = 0; r < kConcatLinearRows; ++r)
        in[r] = *reinterpret_cast<const cuda::Pack<T, V>*>(part.x.row(min(first + r, last)) + k);
    } else {
#pragma unroll
      for (int r = 0; r < kConcatLinearRows; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v)
          in[r].at[v] = k + v < columns ? part.x.row(min(first + r, last))[k + v] : static_cast<T>(0.0f);
    }
    float w[V] = {};
    read_weights<V>(part.w + k * part.w_step, part.w_step, part.packs_of_w, columns - k, w);
#pragma unroll
    for (int r = 0; r < kConcatLinearRows; ++r)
#pragma unroll
      for (int v = 0; v < V; ++v) sum[r] += static_cast<float>(in[r].at[v]) * w[v];
  }
}

template <class T>
__global__ void __launch_bounds__(256, 3)
    concat_linear_kernel(const __grid_constant__ ConcatParts<T> parts, const T* bias, View<T, 2> y) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t rows = y.size(0), warps = cuda::thread_count() / 32;
  for (int64_t first = cuda::thread_index() / 32 * kConcatLinearRows; first < rows;
       first += warps * kConcatLinearRows) {
    float sum[kConcatLinearRows] = {};
    for (int p = 0; p < parts.count; ++p)
      if (parts.at[p].packs)
        add_products<kConcatPack<T>>(parts.at[p], first, lane, sum);
      else
        add_products<1>(parts.at[p], first, lane, sum);
#pragma unroll
    for (int r = 0; r < kConcatLinearRows; ++r) {
      float total = cuda::warp_sum(sum[r]);
      if (bias) total += static_cast<float>(*bias);
      if (lane == 0 && first + r < rows) y.row(first + r)[0] = static_cast<T>(total);
    }
  }
}

/// d_x = d_y w^T. The grid has at least as many threads as a row has chunks; a thread keeps its chunk's column.
template <int V, class T>
__global__ void concat_linear_backward_kernel(View<const T, 2> d_y, const T* w, int64_t w_step, bool packs_of_w,
                                              View<T, 2> d_x) {
  const int64_t columns = d_x.size(1), per_row = cuda::chunks_per_row(columns, V), i = cuda::thread_index(),
                step = cuda::thread_count() / per_row, column = i % per_row * V, left = columns - column;
  if (i >= step * per_row) return;
  float factor[V] = {};
  read_weights<V>(w + column * w_step, w_step, packs_of_w, left, factor);
  for (int64_t b = i / per_row; b < d_x.size(0); b += step) {
    const auto gradient = static_cast<float>(d_y.row(b)[0]);
    float out[V];
#pragma unroll
    for (int v = 0; v < V; ++v) out[v] = gradient * factor[v];
    cuda::write<V>(d_x.row(b) + column, left, out);
  }
}

template <int V, class T>
bool vector_takes_packs(const T* data, int64_t step) {
  return step == 1 && reinterpret_cast<uintptr_t>(data) % (sizeof(T) * V) == 0;
}

}  // namespace

void cuda::concat_linear(Context& ctx, const std::vector<Tensor>& x, Tensor w, std::optional<Tensor> bias, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = kConcatPack<T>;
    ConcatParts<T> parts{};
    const T* of_part = w.data<const T>();
    const int64_t step = w.row_stride();
    for (const Tensor& part : x) {
      const View<const T, 2> view = part.view<const T, 2>();
      parts.at[parts.count++] = {view, of_part, step, takes_packs<V>(view), vector_takes_packs<V>(of_part, step)};
      of_part += part.dim(1) * step;
    }
    launch(ctx, "concat_linear", grid_for((y.rows() + kConcatLinearRows - 1) / kConcatLinearRows * 32),
           concat_linear_kernel<T>, parts, bias ? bias->data<const T>() : nullptr, y.view<T, 2>());
  });
}

void cuda::concat_linear_backward(Context& ctx, Tensor w, Tensor d_y, const std::vector<int64_t>& widths,
                                  const std::vector<std::optional<Tensor>>& d_x) {
  dispatch_float(d_y.dtype(), [&]<class T>() {
    constexpr int V = kConcatPack<T>;
    const T* of_part = w.data<const T>();
    const int64_t step = w.row_stride();
    for (size_t p = 0; p < widths.size(); of_part += widths[p++] * step) {
      if (!d_x[p] || d_x[p]->elements() == 0) continue;
      const View<T, 2> to = d_x[p]->template view<T, 2>();
      const bool packs = takes_packs<V>(to);
      const int64_t per_row = chunks_per_row(widths[p], packs ? V : 1);
      Grid grid = grid_for(to.size(0) * per_row);
      grid.blocks = std::max(grid.blocks, (per_row + grid.threads - 1) / grid.threads);
      launch(ctx, "concat_linear_backward", grid,
             packs ? concat_linear_backward_kernel<V, T> : concat_linear_backward_kernel<1, T>, d_y.view<const T, 2>(),
             of_part, step, packs && vector_takes_packs<V>(of_part, step), to);
    }
  });
}

}  // namespace hctr::ops
