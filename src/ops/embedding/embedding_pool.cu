#include "ops/common/small_divisor.h"
#include "ops/embedding/embedding_pool.cuh"

namespace hctr::ops {
namespace {

template <class T, class Stored, int Width>
__device__ void pool_vectors(BlockRange range, KeyBatch batch, const int32_t* rows, const Stored* table,
                             Combiner combiner, View<T, 3> y, int lanes, int each) {
  const int64_t dim = y.size(2);
  pool_all<Stored, Width>(range, batch, rows, table, combiner, dim, lanes, each,
                          [&](uint32_t b, uint32_t column) { return y.row(b) + column * dim; });
}

/// The vectors of a sample as one contiguous row. A lane processes two elements at a time. If elements have two bytes,
/// the two elements are adjacent, and the lane writes one word.
template <class T>
struct SampleElements {
  int dim, elements;
  SmallDivisor by_dim;

  /// Index of the lane's element i (0 or 1) among the 64 elements from `begin` on, clamped to the last element.
  __device__ int at(int begin, int lane, int i) const {
    return min(begin + (sizeof(T) == 2 ? 2 * lane + i : 32 * i + lane), elements - 1);
  }
  __device__ void write(T* to, int begin, int lane, const float (&of)[2]) const {
    if constexpr (sizeof(T) == 2) {
      const int first = begin + 2 * lane;
      if (first + 1 < elements)
        *reinterpret_cast<Pack<T, 2>*>(to + first) = {{static_cast<T>(of[0]), static_cast<T>(of[1])}};
      else if (first < elements)
        to[first] = static_cast<T>(of[0]);
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (const int element = begin + 32 * i + lane; element < elements) to[element] = of[i];
    }
  }
};

/// kPairs: element pairs that a lane loads before it uses any of them, so that the loads run concurrently. kBlocks:
/// resident blocks per multiprocessor.
template <class Stored>
struct SamplePace {
  static constexpr int kPairs = sizeof(Stored) == 2 ? 3 : 5, kBlocks = sizeof(Stored) == 2 ? 5 : 4;
};

/// Pooling for row lengths that allow no wide access: a warp writes the vectors of a sample as one row. At most 32
/// columns.
template <class T, class Stored>
__device__ void pool_samples(BlockRange range, KeyBatch batch, const int32_t* rows, const Stored* table,
                             Combiner combiner, SmallDivisor by_dim, View<T, 3> y) {
  constexpr unsigned kWarp = 0xffffffffu;
  constexpr int kPairs = SamplePace<Stored>::kPairs;
  const int lane = static_cast<int>(threadIdx.x) % 32, dim = static_cast<int>(y.size(2));
  const SampleElements<T> own{dim, static_cast<int>(batch.columns) * dim, by_dim};
  for (int64_t b = range.thread_index() / 32; b < batch.samples; b += range.thread_count() / 32) {
    const KeyRange keys = lane < batch.columns ? batch.keys_of(lane * batch.samples + b) : KeyRange{0, 0};
    const int32_t first = keys.begin < keys.end ? rows[keys.begin] : 0;
    T* const to = y.row(b);
    const auto first_of = [&](int element, int column) {
      const int64_t row = __shfl_sync(kWarp, first, column);
      return row != 0 ? static_cast<float>(table[row * dim + element - column * dim]) : 0.0f;
    };
    if (!__any_sync(kWarp, keys.end - keys.begin > 1)) {
      for (int begin = 0; begin < own.elements; begin += 64 * kPairs) {
        float sum[kPairs][2];
#pragma unroll
        for (int c = 0; c < kPairs; ++c)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const int element = own.at(begin + 64 * c, lane, i);
            sum[c][i] = 0.0f + first_of(element, by_dim.divide(element));
          }
#pragma unroll
        for (int c = 0; c < kPairs; ++c) own.write(to, begin + 64 * c, lane, sum[c]);
      }
      continue;
    }
    for (int begin = 0; begin < own.elements; begin += 64) {
      float sum[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int element = own.at(begin, lane, i), column = by_dim.divide(element), k = element - column * dim;
        sum[i] = 0.0f + first_of(element, column);
        const int32_t key = __shfl_sync(kWarp, keys.begin, column), end = __shfl_sync(kWarp, keys.end, column);
        for (int32_t p = key + 1; p < end; ++p)
          if (const int64_t next = rows[p]; next != 0) sum[i] += static_cast<float>(table[next * dim + k]);
        sum[i] *= batch.weight(combiner, column * batch.samples + b);
      }
      own.write(to, begin, lane, sum);
    }
  }
}

/// Whether pool_samples() supports these vectors, and has work for most lanes. With a single column of f32,
/// pool_vectors() is faster, because a warp pools several samples at a time.
template <class Stored>
bool takes_samples(const KeyBatch& batch, const Tensor& y) {
  const bool words = size_of(y.dtype()) == 4 || y.row_stride() % 2 == 0;
  return batch.columns <= 32 && (batch.columns > 1 || !kKeysByLane<Stored>) && y.dim(2) >= 5 && y.dim(2) <= 1024 &&
         batch.columns * y.dim(2) >= 64 && words && reinterpret_cast<uintptr_t>(y.bytes()) % 4 == 0;
}

}  // namespace

void cuda::pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  dispatch_into(table, y, [&]<class T, class Stored, int Width>() {
    if constexpr (Width == 1)
      if (takes_samples<Stored>(batch, y))
        return hctr::cuda::launch_lockstep<pool_samples<T, Stored>, kPoolThreads, SamplePace<Stored>::kBlocks>(
            ctx, "pool", hctr::cuda::grid_for(32 * batch.samples).blocks, batch, rows, table.as<const Stored>(),
            combiner, SmallDivisor(static_cast<int>(y.dim(2))), y.view<T, 3>());
    const int lanes = lanes_for(y.dim(2), Width), each = vectors_of_warp<Stored>(ctx, batch, lanes);
    constexpr auto kBody = pool_vectors<T, Stored, Width>;
    if constexpr (Width >= 4)
      if (ctx.multiprocessors() > 0)
        return hctr::cuda::launch_held<kBody, Pace<Stored>::kHeldThreads>(
            ctx, "pool", batch, rows, table.as<const Stored>(), combiner, y.view<T, 3>(), lanes, each);
    hctr::cuda::launch_lockstep<kBody, kPoolThreads, Pace<Stored>::kBlocks>(
        ctx, "pool", hctr::cuda::grid_for(threads_for_all(batch.vectors(), each)).blocks, batch, rows,
        table.as<const Stored>(), combiner, y.view<T, 3>(), lanes, each);
  });
}

}  // namespace hctr::ops
