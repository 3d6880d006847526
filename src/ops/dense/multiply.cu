// Kernels of element-wise products. The addresses of the factors are kernel arguments. For each factor, the backward
// kernel reads all other factors again; after the first time, the reads hit the cache.
#include "ops/dense/multiply.h"

#include "ops/common/element_loops.cuh"
#include "ops/dense/multiply_rules.h"

namespace hctr::ops {
namespace {

template <class T>
struct Factors {
  const T* data[kMostFactors];
  int64_t row_stride[kMostFactors];
  int count;
};
template <class T>
struct Gradients {
  T* data[kMostFactors];  ///< null: not requested
  int64_t row_stride[kMostFactors];
};

template <int V, class T>
__device__ inline void times(const Factors<T>& x, int n, cuda::Chunk s, int64_t left, float (&product)[V]) {
  float next[V] = {};
  cuda::read<V>(x.data[n] + s.row * x.row_stride[n] + s.column, left, next);
#pragma unroll
  for (int j = 0; j < V; ++j) product[j] *= next[j];
}

template <int V, class T>
__global__ void multiply_kernel(const __grid_constant__ Factors<T> x, View<T, 2> y) {
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float product[V];
    for (float& each : product) each = 1;
#pragma unroll 4
    for (int n = 0; n < x.count; ++n) times<V>(x, n, s, left, product);
    cuda::write<V>(y.row(s.row) + s.column, left, product);
  }
}

template <int V, class T>
__global__ void multiply_backward_kernel(const __grid_constant__ Factors<T> x, View<const T, 2> dy,
                                         const __grid_constant__ Gradients<T> dx) {
  const int64_t rows = dy.size(0), columns = dy.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float before[V] = {};  // dy times the factors before factor n
    cuda::read<V>(dy.row(s.row) + s.column, left, before);
    for (int n = 0; n < x.count; ++n) {
      if (dx.data[n]) {
        float product[V];
#pragma unroll
        for (int j = 0; j < V; ++j) product[j] = before[j];
        for (int m = n + 1; m < x.count; ++m) times<V>(x, m, s, left, product);
        cuda::write<V>(dx.data[n] + s.row * dx.row_stride[n] + s.column, left, product);
      }
      times<V>(x, n, s, left, before);
    }
  }
}

template <class T>
Factors<T> factors_of(const std::vector<Tensor>& x, Extent extent, bool& packs) {
  Factors<T> factors{};
  for (const Tensor& t : x) {
    const View<const T, 2> view = rows_of<const T>(t, extent);
    packs = packs && cuda::takes_packs<16 / sizeof(T)>(view);
    factors.data[factors.count] = view.data;
    factors.row_stride[factors.count++] = view.row_stride;
  }
  return factors;
}

}  // namespace

void cuda::multiply(Context& ctx, const std::vector<Tensor>& x, Tensor y) {
  const Extent extent{y.rows(), y.row_elements()};
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<T, 2> to = y.matrix<T>();
    bool packs = takes_packs<V>(to);
    const Factors<T> factors = factors_of<T>(x, extent, packs);
    launch(ctx, "multiply", grid_for(extent.rows * chunks_per_row(extent.columns, packs ? V : 1)),
           packs ? multiply_kernel<V, T> : multiply_kernel<1, T>, factors, to);
  });
}

void cuda::multiply_backward(Context& ctx, const std::vector<Tensor>& x, Tensor dy,
                             const std::vector<std::optional<Tensor>>& dx) {
  const Extent extent{dy.rows(), dy.row_elements()};
  dispatch_float(dy.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> from = dy.matrix<const T>();
    bool packs = takes_packs<V>(from);
    const Factors<T> factors = factors_of<T>(x, extent, packs);
    Gradients<T> gradients{};
    for (size_t n = 0; n < dx.size(); ++n) {
      if (!dx[n]) continue;
      const View<T, 2> to = dx[n]->matrix<T>();
      packs = packs && takes_packs<V>(to);
      gradients.data[n] = to.data;
      gradients.row_stride[n] = to.row_stride;
    }
    launch(ctx, "multiply_backward", grid_for(extent.rows * chunks_per_row(extent.columns, packs ? V : 1)),
           packs ? multiply_backward_kernel<V, T> : multiply_backward_kernel<1, T>, factors, from, gradients);
  });
}

void cuda::subtract(Context& ctx, Tensor a, Tensor b, Tensor y) {
  const Extent extent = extent_of({y, a, b});
  dispatch_float(y.dtype(), [&]<class T>() {
    map<Minus, T, T, 2>(ctx, "subtract", Minus(), {{rows_of<const T>(a, extent), rows_of<const T>(b, extent)}},
                        rows_of<T>(y, extent));
  });
}

void cuda::negate(Context& ctx, Tensor x, Tensor y) {
  const Extent extent = extent_of({y, x});
  dispatch_float(y.dtype(), [&]<class T>() {
    map<Negative, T, T, 1>(ctx, "negate", Negative(), {{rows_of<const T>(x, extent)}}, rows_of<T>(y, extent));
  });
}

void cuda::zero_where_zero(Context& ctx, Tensor x, Tensor y) {
  const Extent extent = extent_of({y, x});
  dispatch_float(y.dtype(), [&]<class T>() {
    map<UnlessZero, T, T, 2>(ctx, "zero_where_zero", UnlessZero(),
                             {{rows_of<const T>(x, extent), rows_of<const T>(y, extent)}}, rows_of<T>(y, extent));
  });
}

}  // namespace hctr::ops
