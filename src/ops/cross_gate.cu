#include "ops/cross_gate.h"

#include "ops/element_loops.cuh"

namespace hctr::ops {
namespace {

template <int V, class T>
__global__ void cross_gate_kernel(View<const T, 2> x, View<const T, 2> t, View<const T, 2> skip, View<T, 2> y) {
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float a[V] = {}, b[V] = {}, out[V] = {};
    cuda::read<V>(x.row(s.row) + s.column, left, a);
    cuda::read<V>(t.row(s.row) + s.column, left, b);
    cuda::read<V>(skip.row(s.row) + s.column, left, out);
#pragma unroll
    for (int j = 0; j < V; ++j) out[j] += a[j] * b[j];
    cuda::write<V>(y.row(s.row) + s.column, left, out);
  }
}

template <int V, class T>
__global__ void cross_gate_backward_kernel(View<const T, 2> x, View<const T, 2> t, View<const T, 2> dy, bool onto,
                                           View<T, 2> dt, View<float, 2> total) {
  const int64_t rows = dy.size(0), columns = dy.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float a[V] = {}, b[V] = {}, g[V] = {}, sum[V] = {};
    cuda::read<V>(x.row(s.row) + s.column, left, a);
    cuda::read<V>(t.row(s.row) + s.column, left, b);
    cuda::read<V>(dy.row(s.row) + s.column, left, g);
    if (onto) cuda::read<V>(static_cast<const float*>(total.row(s.row) + s.column), left, sum);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      a[j] *= g[j];
      sum[j] += g[j] * b[j];
    }
    cuda::write<V>(dt.row(s.row) + s.column, left, a);
    cuda::write<V>(total.row(s.row) + s.column, left, sum);
  }
}

template <int V, class T>
__global__ void add_f32_kernel(View<const T, 2> a, View<const float, 2> b, View<T, 2> y) {
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float sum[V] = {}, more[V] = {};
    cuda::read<V>(a.row(s.row) + s.column, left, sum);
    cuda::read<V>(b.row(s.row) + s.column, left, more);
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] += more[j];
    cuda::write<V>(y.row(s.row) + s.column, left, sum);
  }
}

cuda::Grid elements_of(const Tensor& t, int V) {
  return cuda::grid_for(t.rows() * cuda::chunks_per_row(t.row_elements(), V));
}

}  // namespace

void cuda::cross_gate(Context& ctx, Tensor x, Tensor t, Tensor skip, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> a = x.matrix<const T>(), b = t.matrix<const T>(), c = skip.matrix<const T>();
    const View<T, 2> to = y.matrix<T>();
    const bool packs = takes_packs<V>(a) && takes_packs<V>(b) && takes_packs<V>(c) && takes_packs<V>(to);
    launch(ctx, "cross_gate", elements_of(y, packs ? V : 1), packs ? cross_gate_kernel<V, T> : cross_gate_kernel<1, T>,
           a, b, c, to);
  });
}

void cuda::cross_gate_backward(Context& ctx, Tensor x, Tensor t, Tensor dy, bool onto, Tensor dt, Tensor total) {
  dispatch_float(dy.dtype(), [&]<class T>() {
    constexpr int V = 4;
    const View<const T, 2> a = x.matrix<const T>(), b = t.matrix<const T>(), g = dy.matrix<const T>();
    const View<T, 2> to = dt.matrix<T>();
    const View<float, 2> sum = total.matrix<float>();
    const bool packs =
        takes_packs<V>(a) && takes_packs<V>(b) && takes_packs<V>(g) && takes_packs<V>(to) && takes_packs<V>(sum);
    launch(ctx, "cross_gate_backward", elements_of(dy, packs ? V : 1),
           packs ? cross_gate_backward_kernel<V, T> : cross_gate_backward_kernel<1, T>, a, b, g, onto, to, sum);
  });
}

void cuda::add_f32(Context& ctx, Tensor a, Tensor b, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 4;
    const View<const T, 2> from = a.matrix<const T>();
    const View<const float, 2> more = b.matrix<const float>();
    const View<T, 2> to = y.matrix<T>();
    const bool packs = takes_packs<V>(from) && takes_packs<V>(more) && takes_packs<V>(to);
    launch(ctx, "add_f32", elements_of(y, packs ? V : 1), packs ? add_f32_kernel<V, T> : add_f32_kernel<1, T>, from,
           more, to);
  });
}

}  // namespace hctr::ops
