// Fill kernels: one store per thread and iteration.
#include "ops/common/fill.h"

#include "ops/common/element_loops.cuh"

namespace hctr::ops {
namespace {

template <int V, class T>
__global__ void fill_kernel(float value, View<T, 2> y) {
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  float out[V];
  for (float& each : out) each = value;
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    cuda::write<V>(y.row(s.row) + s.column, columns - s.column, out);
  }
}

}  // namespace

void cuda::fill(Context& ctx, float value, Tensor y) {
  const Extent extent = extent_of({y});
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<T, 2> to = rows_of<T>(y, extent);
    if (takes_packs<V>(to))
      launch(ctx, "fill", grid_for(extent.rows * chunks_per_row(extent.columns, V)), fill_kernel<V, T>, value, to);
    else
      launch(ctx, "fill", grid_for(extent.rows * extent.columns), fill_kernel<1, T>, value, to);
  });
}

}  // namespace hctr::ops
