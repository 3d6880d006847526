// Addition kernels. The addresses of the addends are kernel arguments; each thread adds its elements in the order of
// the addends.
#include "ops/common/add.h"

#include "ops/common/element_loops.cuh"

namespace hctr::ops {
namespace {

template <class T>
struct Addends {
  const T* data[kMostAddends];
  int64_t row_stride[kMostAddends];
  int count;
};

template <int V, class T>
__global__ void add_kernel(const __grid_constant__ Addends<T> x, View<T, 2> y, bool scores) {
  cuda::start_early_in_scoring(scores);
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float sum[V] = {};
    cuda::read<V>(x.data[0] + s.row * x.row_stride[0] + s.column, left, sum);
#pragma unroll 4
    for (int n = 1; n < x.count; ++n) {
      float next[V] = {};
      cuda::read<V>(x.data[n] + s.row * x.row_stride[n] + s.column, left, next);
#pragma unroll
      for (int j = 0; j < V; ++j) sum[j] += next[j];
    }
    cuda::write<V>(y.row(s.row) + s.column, left, sum);
  }
}

struct PlusScaled {
  float factor;
  __device__ float operator()(float x, float y) const { return y + factor * x; }
};

}  // namespace

void cuda::add(Context& ctx, const std::vector<Tensor>& x, Tensor y) {
  Extent extent = extent_of({y});
  for (const Tensor& t : x)
    if (!t.dense()) extent = extent_of({t});
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<T, 2> to = rows_of<T>(y, extent);
    bool packs = takes_packs<V>(to);
    Addends<T> from{};
    for (const Tensor& t : x) {
      const View<const T, 2> view = rows_of<const T>(t, extent);
      packs = packs && takes_packs<V>(view);
      from.data[from.count] = view.data;
      from.row_stride[from.count++] = view.row_stride;
    }
    if (packs)
      launch(ctx, "add", early_in_scoring(grid_for(extent.rows * chunks_per_row(extent.columns, V))), add_kernel<V, T>,
             from, to, is_scoring());
    else
      launch(ctx, "add", early_in_scoring(grid_for(extent.rows * extent.columns)), add_kernel<1, T>, from, to,
             is_scoring());
  });
}

void cuda::add_scaled(Context& ctx, Tensor x, float factor, Tensor y) {
  const Extent extent = extent_of({x, y});
  dispatch_float(y.dtype(), [&]<class T>() {
    const View<T, 2> to = rows_of<T>(y, extent);
    map<PlusScaled, T, T, 2>(ctx, "add_scaled", PlusScaled{factor},
                             {{rows_of<const T>(x, extent), {to.data, {extent.rows, extent.columns}, to.row_stride}}},
                             to);
  });
}

}  // namespace hctr::ops
