#include "device/launch.cuh"
#include "ops/embedding/row_marks.h"

namespace hctr::ops {
namespace {

__global__ void mark_rows_kernel(RowGroups groups, int64_t key_capacity, RowMarks marks, const StepState* state) {
  const uint32_t step = marks.step_of(*state);
  const int64_t runs = groups.counts->runs;
  for (int64_t run = hctr::cuda::thread_index(); run < runs; run += hctr::cuda::thread_count()) {
    const int32_t first = groups.run_begin[run], row = groups.rows[first];
    if (marks.last_seen) marks.last_seen[row] = step;
    if (marks.occurrences) {
      const auto more = static_cast<uint32_t>(groups.run_end(run, key_capacity) - first);
      marks.occurrences[row] += min(more, 0xffffffffu - marks.occurrences[row]);
    }
  }
}

/// Occurrences of one row write one step: whichever comes last.
__global__ void count_rows_kernel(KeyBatch batch, const int32_t* rows, RowMarks marks, const StepState* state) {
  const int64_t size = batch.size();
  const uint32_t step = marks.step_of(*state);
  for (int64_t p = hctr::cuda::thread_index(); p < size; p += hctr::cuda::thread_count()) {
    const int32_t row = rows[p];
    if (row == 0) continue;
    if (marks.last_seen) marks.last_seen[row] = step;
    if (marks.occurrences) atomicAdd(&marks.occurrences[row], 1u);
  }
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;

void mark_rows(Context& ctx, RowGroups groups, int64_t key_capacity, RowMarks marks) {
  launch(ctx, "mark_rows", grid_for(key_capacity), mark_rows_kernel, groups, key_capacity, marks, ctx.state());
}

void count_rows(Context& ctx, KeyBatch batch, const int32_t* rows, RowMarks marks) {
  launch(ctx, "count_rows", grid_for(batch.key_capacity), count_rows_kernel, batch, rows, marks, ctx.state());
}

}  // namespace cuda
}  // namespace hctr::ops
