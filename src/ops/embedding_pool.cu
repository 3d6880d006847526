#include "device/launch.cuh"
#include "ops/embedding_pool.h"
#include "ops/embedding_vector.cuh"

namespace hctr::ops {
namespace {

/// One group of lanes per vector.
template <class T, int Width>
__global__ void pool_kernel(KeyBatch batch, const int32_t* rows, const float* table, Combiner combiner, View<T, 3> y,
                            int lanes) {
  const Group group(lanes);
  const int64_t dim = y.size(2);
  const auto samples = static_cast<uint32_t>(batch.samples);
  for (int64_t v = group.index; v < batch.vectors(); v += group.count) {
    const KeyRange keys = batch.keys_of(v);
    const float weight = batch.weight(combiner, v);
    T* vector = y.row(static_cast<uint32_t>(v) % samples) + static_cast<uint32_t>(v) / samples * dim;
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      Part<Width> sum{};
#pragma unroll 4
      for (int32_t p = keys.begin; p < keys.end; ++p) {
        const int32_t row = rows[p];
        if (row == 0) continue;
        const Part<Width> part = load_part<Width>(table + row * dim + e);
#pragma unroll
        for (int i = 0; i < Width; ++i) sum.v[i] += part.v[i];
      }
#pragma unroll
      for (int i = 0; i < Width; ++i) sum.v[i] *= weight;
      store_part<Width>(vector + e, sum);
    }
  }
}

}  // namespace

void cuda::pool(Context& ctx, KeyBatch batch, const int32_t* rows, const float* table, Combiner combiner, Tensor y) {
  const int64_t dim = y.dim(2);
  dispatch_float(y.dtype(), [&]<class T>() {
    const bool by_four =
        splits_by_four(y.bytes(), sizeof(T), y.row_stride(), dim) && splits_by_four(table, sizeof(float), dim, dim);
    dispatch_width(by_four, [&]<int Width>() {
      const int lanes = lanes_for(dim, Width);
      hctr::cuda::launch(ctx, "pool", hctr::cuda::grid_for(batch.vectors() * lanes), pool_kernel<T, Width>, batch, rows,
                         table, combiner, y.view<T, 3>(), lanes);
    });
  });
}

}  // namespace hctr::ops
