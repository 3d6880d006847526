#include "ops/embedding/embedding_pool.cuh"
#include "ops/small_divisor.h"

namespace hctr::ops {
namespace {

template <class T, class Stored, int Width>
__device__ void pool_vectors(BlockRange range, KeyBatch batch, const int32_t* rows, const Stored* table,
                             Combiner combiner, View<T, 3> y, int lanes) {
  const int64_t dim = y.size(2);
  pool_all<Stored, Width>(range, batch, rows, table, combiner, dim, lanes,
                          [&](uint32_t b, uint32_t column) { return y.row(b) + column * dim; });
}

/// For rows whose length allows no wide access: a warp writes the vectors of a sample as one row, two elements a lane.
/// At most 32 columns.
template <class T, class Stored>
__device__ void pool_samples(BlockRange range, KeyBatch batch, const int32_t* rows, const Stored* table,
                             Combiner combiner, SmallDivisor by_dim, View<T, 3> y) {
  constexpr unsigned kWarp = 0xffffffffu;
  const int lane = static_cast<int>(threadIdx.x) % 32, dim = static_cast<int>(y.size(2));
  const int elements = static_cast<int>(batch.columns) * dim;
  for (int64_t b = range.thread_index() / 32; b < batch.samples; b += range.thread_count() / 32) {
    const KeyRange keys = lane < batch.columns ? batch.keys_of(lane * batch.samples + b) : KeyRange{0, 0};
    const int32_t first = keys.begin < keys.end ? rows[keys.begin] : 0;
    const bool several = __any_sync(kWarp, keys.end - keys.begin > 1);
    T* const to = y.row(b);
#pragma unroll 3
    for (int begin = 0; begin < elements; begin += 64) {
      float sum[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int element = min(begin + 2 * lane + i, elements - 1), column = by_dim.divide(element);
        const int k = element - column * dim;
        const int64_t row = __shfl_sync(kWarp, first, column);
        sum[i] = 0.0f + (row != 0 ? static_cast<float>(table[row * dim + k]) : 0.0f);
        if (several) {
          const int32_t key = __shfl_sync(kWarp, keys.begin, column), end = __shfl_sync(kWarp, keys.end, column);
          for (int32_t p = key + 1; p < end; ++p)
            if (const int64_t next = rows[p]; next != 0) sum[i] += static_cast<float>(table[next * dim + k]);
          sum[i] *= batch.weight(combiner, column * batch.samples + b);
        }
      }
      const int at = begin + 2 * lane;
      if (at + 1 < elements)
        *reinterpret_cast<Pack<T, 2>*>(to + at) = {{static_cast<T>(sum[0]), static_cast<T>(sum[1])}};
      else if (at < elements)
        to[at] = static_cast<T>(sum[0]);
    }
  }
}

/// Whether pool_samples() takes the vectors, and has work for most lanes.
bool takes_samples(const KeyBatch& batch, const Tensor& y) {
  return batch.columns <= 32 && y.dim(2) >= 5 && y.dim(2) <= 1024 && batch.columns * y.dim(2) >= 64 &&
         y.row_stride() % 2 == 0 && reinterpret_cast<uintptr_t>(y.bytes()) % 4 == 0;
}

}  // namespace

void cuda::pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  dispatch_into(table, y, [&]<class T, class Stored, int Width>() {
    if constexpr (Width == 1 && sizeof(T) == 2)
      if (takes_samples(batch, y))
        return hctr::cuda::launch_lockstep<pool_samples<T, Stored>, kPoolThreads, 4>(
            ctx, "pool", hctr::cuda::grid_for(32 * batch.samples).blocks, batch, rows, table.as<const Stored>(),
            combiner, SmallDivisor(static_cast<int>(y.dim(2))), y.view<T, 3>());
    const int lanes = lanes_for(y.dim(2), Width);
    hctr::cuda::launch_lockstep<pool_vectors<T, Stored, Width>, kPoolThreads, Pace<Stored>::kBlocks>(
        ctx, "pool", hctr::cuda::grid_for(threads_for<Stored>(batch.vectors(), lanes)).blocks, batch, rows,
        table.as<const Stored>(), combiner, y.view<T, 3>(), lanes);
  });
}

}  // namespace hctr::ops
