#include "device/launch.cuh"
#include "ops/embedding/direct_index.h"

namespace hctr::ops {
namespace {

__global__ void direct_rows_kernel(DirectIndex index, KeyBatch batch, StrayState* strays, int32_t* rows) {
  const int64_t count = batch.size();
  for (int64_t p = hctr::cuda::thread_index(); p < batch.key_capacity; p += hctr::cuda::thread_count()) {
    int32_t row = 0;
    if (p < count) {
      const auto at = static_cast<int32_t>(p);
      const int32_t slot = index.by_slot ? batch.slot_of(at) : 0;
      row = index.row(batch.keys[p], slot);
      if (row == 0 && !index.elsewhere(slot)) atomicMin(&strays->first, at);
    }
    rows[p] = row;
  }
}

__global__ void tell_stray_kernel(KeyBatch batch, StrayState* strays, volatile Stray* host) {
  if (strays->told || strays->first == INT32_MAX) return;
  host->key = batch.keys[strays->first];
  host->slot = batch.slot_of(strays->first);
  __threadfence_system();
  host->found = 1;
  strays->told = 1;
}

}  // namespace

namespace cuda {

void direct_rows(Context& ctx, DirectIndex index, KeyBatch batch, StrayState* strays, int32_t* rows) {
  hctr::cuda::launch(ctx, "direct_rows", hctr::cuda::grid_for(batch.key_capacity), direct_rows_kernel, index, batch,
                     strays, rows);
}

void tell_stray(Context& ctx, KeyBatch batch, StrayState* strays, Stray* host) {
  hctr::cuda::launch(ctx, "tell_stray", {1, 1, 0}, tell_stray_kernel, batch, strays, host);
}

}  // namespace cuda
}  // namespace hctr::ops
