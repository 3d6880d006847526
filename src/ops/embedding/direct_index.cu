#include "core/device/launch.cuh"
#include "ops/embedding/direct_index.h"

namespace hctr::ops {
namespace {

__global__ void direct_rows_kernel(DirectIndex index, KeyBatch batch, OutOfRangeState* out_of_range, int32_t* rows) {
  const int64_t count = batch.size();
  for (int64_t p = hctr::cuda::thread_index(); p < batch.key_capacity; p += hctr::cuda::thread_count()) {
    int32_t row = 0;
    if (p < count) {
      const auto at = static_cast<int32_t>(p);
      const int32_t slot = index.by_slot ? batch.slot_of(at) : 0;
      row = index.row(batch.keys[p], slot);
      if (row == 0 && !index.elsewhere(slot)) atomicMin(&out_of_range->first, at);
    }
    rows[p] = row;
  }
}

__global__ void report_out_of_range_kernel(KeyBatch batch, OutOfRangeState* out_of_range,
                                           volatile OutOfRangeKey* host) {
  if (out_of_range->reported || out_of_range->first == INT32_MAX) return;
  host->key = batch.keys[out_of_range->first];
  host->slot = batch.slot_of(out_of_range->first);
  __threadfence_system();
  host->found = 1;
  out_of_range->reported = 1;
}

}  // namespace

namespace cuda {

void direct_rows(Context& ctx, DirectIndex index, KeyBatch batch, OutOfRangeState* out_of_range, int32_t* rows) {
  hctr::cuda::launch(ctx, "direct_rows", hctr::cuda::grid_for(batch.key_capacity), direct_rows_kernel, index, batch,
                     out_of_range, rows);
}

void report_out_of_range(Context& ctx, KeyBatch batch, OutOfRangeState* out_of_range, OutOfRangeKey* host) {
  hctr::cuda::launch(ctx, "report_out_of_range", {1, 1, 0}, report_out_of_range_kernel, batch, out_of_range, host);
}

}  // namespace cuda
}  // namespace hctr::ops
