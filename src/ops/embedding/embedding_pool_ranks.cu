// Pooling that leaves out the vectors of other ranks, or writes vectors to the memory of their ranks.
#include "ops/embedding/embedding_pool.cuh"

namespace hctr::ops {
namespace {

template <class T, class Stored, int Width>
__global__ void __launch_bounds__(kThreads)
    pool_others_kernel(KeyBatch batch, const int32_t* rows, const Stored* table, Combiner combiner, VectorBlocks owners,
                       View<T, 3> y, int lanes) {
  const int64_t dim = y.size(2);
  pool_all<Stored, Width>(
      {blockIdx.x, gridDim.x}, batch, rows, table, combiner, dim, lanes,
      [&](uint32_t b, uint32_t place) { return owners.any_owner(place, b) ? nullptr : y.row(b) + place * dim; });
}

/// Groups that follow each other write to different ranks, so that all links are in use all the time, and begin with
/// the rank behind their own, so that no rank is written to by all.
template <class T, class Stored, int Width>
__global__ void __launch_bounds__(kThreads)
    pool_parts_kernel(KeyBatch batch, const int32_t* rows, const Stored* table, Combiner combiner, int64_t dim,
                      SampleParts parts, int lanes) {
  constexpr int kAtOnce = Pace<Stored>::kAtOnce;
  if (!parts.memory.writable()) return;
  const Group group(lanes);
  const auto samples = static_cast<uint32_t>(parts.samples), ranks = static_cast<uint32_t>(parts.ranks),
             of_place = (samples + kAtOnce - 1) / kAtOnce * ranks;
  const int64_t groups = batch.places * of_place;
  for (int64_t i = group.index; i < groups; i += group.count) {
    const uint32_t place = static_cast<uint32_t>(i) / of_place, of_ranks = static_cast<uint32_t>(i) - place * of_place,
                   few = of_ranks / ranks;
    const uint32_t rank = (static_cast<uint32_t>(parts.first) + of_ranks - few * ranks) % ranks;
    const int64_t v_of_rank = place * batch.samples + rank * parts.samples, v0 = v_of_rank + few * kAtOnce;
    T* part = reinterpret_cast<T*>(parts.part[rank]) + (parts.columns ? parts.columns[place] : place) * dim;
    pool_few<Stored, Width>(batch, v0, v_of_rank + parts.samples, rows, table, combiner, dim, group, lanes,
                            [&](uint32_t v, KeyRange keys) {
                              return keys.begin < keys.end ? part + (v - v_of_rank) * parts.row_stride : nullptr;
                            });
  }
}

}  // namespace

void cuda::pool_others(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner,
                       VectorBlocks owners, Tensor y) {
  dispatch_into(table, y, [&]<class T, class Stored, int Width>() {
    const int lanes = lanes_for(y.dim(2), Width);
    hctr::cuda::launch(ctx, "pool_others", hctr::cuda::grid_for(threads_for<Stored>(batch.vectors(), lanes), kThreads),
                       pool_others_kernel<T, Stored, Width>, batch, rows, table.as<const Stored>(), combiner, owners,
                       y.view<T, 3>(), lanes);
  });
}

void cuda::pool_parts(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner,
                      int64_t dim, SampleParts parts) {
  const auto alike = [&](int64_t width, int64_t size) {
    return parts.memory.alignment % static_cast<size_t>(width * size) == 0;
  };
  dispatch_widest(parts.memory.dtype, table, dim, alike, [&]<class T, class Stored, int Width>() {
    const int lanes = lanes_for(dim, Width);
    hctr::cuda::launch(ctx, "pool_parts",
                       grid_of(parts.memory, threads_for<Stored>(parts.samples, lanes) * parts.ranks * batch.places),
                       pool_parts_kernel<T, Stored, Width>, batch, rows, table.as<const Stored>(), combiner, dim, parts,
                       lanes);
  });
}

}  // namespace hctr::ops
