#include "ops/embedding/embedding_pool.cuh"

namespace hctr::ops {
namespace {

template <class T, class Stored, int Width>
__device__ void pool_vectors(BlockRange range, KeyBatch batch, const int32_t* rows, const Stored* table,
                             Combiner combiner, View<T, 3> y, int lanes) {
  const int64_t dim = y.size(2);
  pool_all<Stored, Width>(range, batch, rows, table, combiner, dim, lanes,
                          [&](uint32_t b, uint32_t column) { return y.row(b) + column * dim; });
}

}  // namespace

void cuda::pool(Context& ctx, KeyBatch batch, const int32_t* rows, RowMemory table, Combiner combiner, Tensor y) {
  dispatch_into(table, y, [&]<class T, class Stored, int Width>() {
    const int lanes = lanes_for(y.dim(2), Width);
    hctr::cuda::launch_lockstep<pool_vectors<T, Stored, Width>, kPoolThreads, Pace<Stored>::kBlocks>(
        ctx, "pool", hctr::cuda::grid_for(threads_for<Stored>(batch.vectors(), lanes)).blocks, batch, rows,
        table.as<const Stored>(), combiner, y.view<T, 3>(), lanes);
  });
}

}  // namespace hctr::ops
