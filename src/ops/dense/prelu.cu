// PReLU kernels. A slope gradient is a sum in three stages: a thread sums one column over one part of the rows; then
// the partial sums are added; then the columns that share a slope are added.
#include "ops/dense/prelu.h"

#include "ops/common/element_loops.cuh"
#include "ops/common/reduce_axis.h"
#include "ops/common/row_parts.h"

namespace hctr::ops {
namespace {

/// y = source * (x < 0 ? slope : 1): forward with source x, backward with source dy.
template <int V, class T>
__global__ void prelu_kernel(View<const T, 2> x, View<const T, 2> source, const T* slope, int64_t slopes,
                             View<T, 2> y) {
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float in[V] = {}, out[V] = {};
    cuda::read<V>(x.row(s.row) + s.column, left, in);
    cuda::read<V>(source.row(s.row) + s.column, left, out);
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (in[j] < 0) out[j] *= static_cast<float>(slope[(s.column + j) % slopes]);
    cuda::write<V>(y.row(s.row) + s.column, left, out);
  }
}

template <class T>
__global__ void prelu_slopes_kernel(View<const T, 2> x, View<const T, 2> dy, int64_t rows_per_part, int64_t tiles,
                                    float* parts) {
  const int64_t part = blockIdx.x / tiles, column = blockIdx.x % tiles * blockDim.x + threadIdx.x;
  if (column >= dy.size(1)) return;
  const int64_t begin = part * rows_per_part, end = min(begin + rows_per_part, dy.size(0));
  float sum = 0;
#pragma unroll 4
  for (int64_t b = begin; b < end; ++b) {
    const float v = static_cast<float>(x.row(b)[column]), g = static_cast<float>(dy.row(b)[column]);
    sum += v < 0 ? v * g : 0.0f;
  }
  parts[part * dy.size(1) + column] = sum;
}

template <class T>
void launch_prelu(Context& ctx, const char* name, View<const T, 2> x, View<const T, 2> source, Tensor alpha,
                  View<T, 2> y) {
  constexpr int V = 16 / sizeof(T);
  const bool packs = cuda::takes_packs<V>(x) && cuda::takes_packs<V>(source) && cuda::takes_packs<V>(y);
  cuda::launch(ctx, name, cuda::grid_for(y.size(0) * cuda::chunks_per_row(y.size(1), packs ? V : 1)),
               packs ? prelu_kernel<V, T> : prelu_kernel<1, T>, x, source, alpha.data<const T>(), alpha.dim(1), y);
}

}  // namespace

void cuda::prelu(Context& ctx, Tensor x, Tensor alpha, Tensor y) {
  dispatch_float(x.dtype(), [&]<class T>() {
    launch_prelu<T>(ctx, "prelu", x.matrix<const T>(), x.matrix<const T>(), alpha, y.matrix<T>());
  });
}

void cuda::prelu_backward(Context& ctx, Tensor x, Tensor alpha, Tensor dy, Tensor scratch, std::optional<Tensor> dx,
                          Tensor d_alpha) {
  const int64_t rows = x.rows(), columns = x.row_elements(), parts = row_parts(rows), tiles = (columns + 127) / 128,
                slopes = alpha.dim(1);
  dispatch_float(x.dtype(), [&]<class T>() {
    if (dx) launch_prelu<T>(ctx, "prelu_backward", x.matrix<const T>(), dy.matrix<const T>(), alpha, dx->matrix<T>());
    launch(ctx, "prelu_backward slopes", Grid{parts * tiles, 128, 0}, prelu_slopes_kernel<T>, x.matrix<const T>(),
           dy.matrix<const T>(), (rows + parts - 1) / parts, tiles, scratch.data<float>());
  });
  const auto matrix = [&](int64_t from, int64_t m, int64_t n) {
    return Tensor(scratch.data<float>() + from, TensorSpec(DType::f32, {m, n}), ctx.device());
  };
  const int64_t whole = parts * columns;
  ops::sum_rows(ctx, matrix(0, parts, columns), matrix(whole, 1, columns).reshaped({columns}));
  ops::sum_rows(ctx, matrix(whole, columns / slopes, slopes), d_alpha.reshaped({slopes}));
}

}  // namespace hctr::ops
