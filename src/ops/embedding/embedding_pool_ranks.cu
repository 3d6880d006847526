// Pooling kernels that skip vectors with keys on other owners, or write vectors directly to the memory of other ranks.
#include "ops/embedding/embedding_pool.cuh"

namespace hctr::ops {
namespace {

template <class T, class Stored, int Width>
__global__ void __launch_bounds__(kPoolThreads)
    pool_others_kernel(KeyBatch batch, const int32_t* rows, const Stored* table, Combiner combiner, OwnerVectors owners,
                       View<T, 3> y, int lanes, int each) {
  const int64_t dim = y.size(2);
  pool_all<Stored, Width>(
      {blockIdx.x, gridDim.x}, batch, rows, table, combiner, dim, lanes, each,
      [&](uint32_t b, uint32_t column) { return owners.any_owner(column, b) ? nullptr : y.row(b) + column * dim; });
}

/// Consecutive groups write to different ranks, so that all links stay busy. Each rank starts with the rank after
/// itself, so that the ranks do not all write to one target at the same time.
template <class T, class Stored, int Width>
__global__ void __launch_bounds__(kThreadsToFar)
    pool_shards_kernel(KeyBatch batch, const int32_t* rows, const Stored* table, Combiner combiner, int64_t dim,
                       SampleShards shards, int lanes) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  if (!shards.memory.writable()) return;
  const Group group(lanes);
  const auto samples = static_cast<uint32_t>(shards.samples), ranks = static_cast<uint32_t>(shards.ranks),
             of_column = (samples + kAtOnce - 1) / kAtOnce * ranks;
  const int64_t groups = batch.columns * of_column;
  for (int64_t i = group.index; i < groups; i += group.count) {
    const uint32_t column = static_cast<uint32_t>(i) / of_column,
                   of_ranks = static_cast<uint32_t>(i) - column * of_column, few = of_ranks / ranks;
    const uint32_t rank = (static_cast<uint32_t>(shards.first) + of_ranks - few * ranks) % ranks;
    if (!shards.shard[rank]) continue;
    const int64_t v_of_rank = column * batch.samples + rank * shards.samples, v0 = v_of_rank + few * kAtOnce;
    T* shard = reinterpret_cast<T*>(shards.shard[rank]) + (shards.targets ? shards.targets[column] : column) * dim;
    pool_few<Stored, Width>(batch, v0, v_of_rank + shards.samples, rows, table, combiner, dim, group, lanes,
                            [&](uint32_t v, KeyRange keys) {
                              return keys.begin < keys.end ? shard + (v - v_of_rank) * shards.row_stride : nullptr;
                            });
  }
}

}  // namespace

void cuda::pool_others(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner,
                       OwnerVectors owners, Tensor y) {
  dispatch_into(table, y, [&]<class T, class Stored, int Width>() {
    const int lanes = lanes_for(y.dim(2), Width), each = vectors_of_warp<Stored>(ctx, batch, lanes);
    hctr::cuda::launch(ctx, "pool_others", hctr::cuda::grid_for(threads_for_all(batch.vectors(), each), kPoolThreads),
                       pool_others_kernel<T, Stored, Width>, batch, rows, table.as<const Stored>(), combiner, owners,
                       y.view<T, 3>(), lanes, each);
  });
}

void cuda::pool_shards(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner,
                       int64_t dim, SampleShards shards) {
  const auto alike = [&](int64_t width, int64_t size) {
    return shards.memory.alignment % static_cast<size_t>(width * size) == 0;
  };
  dispatch_widest(shards.memory.dtype, table, dim, alike, [&]<class T, class Stored, int Width>() {
    const int lanes = lanes_for(dim, Width);
    hctr::cuda::launch(ctx, "pool_shards",
                       grid_of(shards.memory, threads_for<Stored>(shards.samples, lanes) * shards.ranks * batch.columns,
                               dim * static_cast<int64_t>(sizeof(T)), Width),
                       pool_shards_kernel<T, Stored, Width>, batch, rows, table.as<const Stored>(), combiner, dim,
                       shards, lanes);
  });
}

}  // namespace hctr::ops
