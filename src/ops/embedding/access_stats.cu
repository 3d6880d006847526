#include "core/device/launch.cuh"
#include "ops/embedding/access_stats.h"

namespace hctr::ops {
namespace {

__global__ void record_access_kernel(RowGroups groups, int64_t key_capacity, AccessStats stats,
                                     const StepState* state) {
  const uint32_t step = stats.step_of(*state);
  const int64_t runs = groups.counts->runs;
  for (int64_t run = hctr::cuda::thread_index(); run < runs; run += hctr::cuda::thread_count())
    stats.record_run(groups, run, key_capacity, step);
}

/// All occurrences of a row write the same step, so the race between writers is benign.
__global__ void record_access_by_key_kernel(KeyBatch batch, const int32_t* rows, AccessStats stats,
                                            const StepState* state) {
  const int64_t size = batch.size();
  const uint32_t step = stats.step_of(*state);
  for (int64_t p = hctr::cuda::thread_index(); p < size; p += hctr::cuda::thread_count()) {
    const int32_t row = rows[p];
    if (row == 0) continue;
    stats.mark(row, step);
    if (stats.occurrences) atomicAdd(&stats.occurrences[row], 1u);
  }
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;

void record_access(Context& ctx, RowGroups groups, int64_t key_capacity, AccessStats stats) {
  launch(ctx, "record_access", grid_for(key_capacity), record_access_kernel, groups, key_capacity, stats, ctx.state());
}

void record_access_by_key(Context& ctx, KeyBatch batch, const int32_t* rows, AccessStats stats) {
  launch(ctx, "record_access_by_key", grid_for(batch.key_capacity), record_access_by_key_kernel, batch, rows, stats,
         ctx.state());
}

}  // namespace cuda
}  // namespace hctr::ops
