#include "device/launch.cuh"
#include "ops/embedding_pool.h"
#include "ops/embedding_vector.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::Share;

constexpr int kAtOnce = 4;  // vectors of a group whose rows are on their way together: a row's number must come before the row

/// One group of lanes per kAtOnce vectors.
template <class T, class Stored, int Width>
__device__ void pool_by(const Share& share, const KeyBatch& batch, const int32_t* rows, const Stored* table, Combiner combiner, const View<T, 3>& y,
                        int lanes) {
  const Group group(share, lanes);
  const int64_t dim = y.size(2), vectors = batch.vectors();
  const auto samples = static_cast<uint32_t>(batch.samples);
  for (int64_t v0 = group.index * kAtOnce; v0 < vectors; v0 += group.count * kAtOnce) {
    KeyRange keys[kAtOnce];
    int32_t first[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) keys[k] = v0 + k < vectors ? batch.keys_of(v0 + k) : KeyRange{0, 0};
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) first[k] = keys[k].begin < keys[k].end ? rows[keys[k].begin] : 0;
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      Part<Width> part[kAtOnce]{};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (first[k] != 0) part[k] = load_part<Width>(table + first[k] * dim + e);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (v0 + k >= vectors) break;
        Part<Width> sum{};
        add(part[k], sum);
        for (int32_t p = keys[k].begin + 1; p < keys[k].end; ++p)
          if (const int32_t row = rows[p]; row != 0) add(load_part<Width>(table + row * dim + e), sum);
        const float weight = batch.weight(combiner, v0 + k);
#pragma unroll
        for (int i = 0; i < Width; ++i) sum.v[i] *= weight;
        const auto v = static_cast<uint32_t>(v0 + k);
        store_part<Width>(y.row(v % samples) + v / samples * dim + e, sum);
      }
    }
  }
}

/// `width` elements at a time. One body for all, so that tables of different dimensions can share a launch.
template <class T, class Stored>
__device__ void pool_vectors(Share share, KeyBatch batch, const int32_t* rows, const Stored* table, Combiner combiner, View<T, 3> y, int width, int lanes) {
  if constexpr (sizeof(Stored) == 2) {
    if (width == 8) return pool_by<T, Stored, 8>(share, batch, rows, table, combiner, y, lanes);
    if (width == 2) return pool_by<T, Stored, 2>(share, batch, rows, table, combiner, y, lanes);
  }
  if (width == 4) return pool_by<T, Stored, 4>(share, batch, rows, table, combiner, y, lanes);
  pool_by<T, Stored, 1>(share, batch, rows, table, combiner, y, lanes);
}

/// The most elements that the memory of both sides lets move at once: 16 bytes of rows.
int widest(const RowMemory& table, int64_t dim, const Tensor& y) {
  const auto row_size = static_cast<int64_t>(size_of(table.dtype)), y_size = static_cast<int64_t>(size_of(y.dtype()));
  for (int width = static_cast<int>(16 / row_size); width > 1; width /= 2)
    if ((row_size == 2 || width == 4) && splits_by(width, table.data, row_size, dim, dim) && splits_by(width, y.bytes(), y_size, y.row_stride(), dim)) return width;
  return 1;
}

}  // namespace

void cuda::pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  const int64_t dim = y.dim(2);
  const int width = widest(table, dim, y), lanes = lanes_for(dim, width);
  const int64_t blocks = hctr::cuda::grid_for((batch.vectors() + kAtOnce - 1) / kAtOnce * lanes).blocks;
  dispatch_float(y.dtype(), [&]<class T>() {
    dispatch_float(table.dtype, [&]<class Stored>() {
      hctr::cuda::launch_shared<pool_vectors<T, Stored>, 256>(ctx, "pool", blocks, batch, rows, table.as<const Stored>(), combiner, y.view<T, 3>(), width,
                                                              lanes);
    });
  });
}

}  // namespace hctr::ops
