#include "core/device/launch.cuh"
#include "ops/embedding/direct_index.h"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
constexpr int kRowThreads = 256;

__device__ void find_rows(BlockRange range, DirectIndex index, KeyBatch batch, OutOfRangeState* out_of_range,
                          int32_t* rows) {
  const int64_t count = batch.size();
  for (int64_t p = range.thread_index(); p < batch.key_capacity; p += range.thread_count()) {
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

__device__ void report(BlockRange, KeyBatch batch, OutOfRangeState* out_of_range, OutOfRangeKey* to_host) {
  volatile OutOfRangeKey* const host = to_host;
  if (out_of_range->reported || out_of_range->first == INT32_MAX) return;
  host->key = batch.keys[out_of_range->first];
  host->slot = batch.slot_of(out_of_range->first);
  __threadfence_system();
  host->found = 1;
  out_of_range->reported = 1;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;

void direct_rows(Context& ctx, DirectIndex index, KeyBatch batch, OutOfRangeState* out_of_range, int32_t* rows) {
  launch_lockstep<find_rows, kRowThreads>(ctx, "direct_rows", grid_for(batch.key_capacity, kRowThreads).blocks, index,
                                          batch, out_of_range, rows);
}

void report_out_of_range(Context& ctx, KeyBatch batch, OutOfRangeState* out_of_range, OutOfRangeKey* host) {
  launch_lockstep<report, 1>(ctx, "report_out_of_range", 1, batch, out_of_range, host);
}

}  // namespace cuda
}  // namespace hctr::ops
