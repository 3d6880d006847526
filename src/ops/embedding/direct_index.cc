#include "ops/embedding/direct_index.h"

#include <algorithm>
#include <atomic>

namespace hctr::ops {

void direct_rows(Context& ctx, DirectIndex index, KeyBatch batch, OutOfRangeState* out_of_range, int32_t* rows) {
  HCTR_ON_DEVICE(ctx, direct_rows(ctx, index, batch, out_of_range, rows));
}
void report_out_of_range(Context& ctx, KeyBatch batch, OutOfRangeState* out_of_range, OutOfRangeKey* host) {
  HCTR_ON_DEVICE(ctx, report_out_of_range(ctx, batch, out_of_range, host));
}

namespace cpu {

void direct_rows(Context& ctx, DirectIndex index, KeyBatch batch, OutOfRangeState* out_of_range, int32_t* rows) {
  const int64_t count = batch.size();
  ctx.threads().parallel_for(count, 8192, [&](int64_t begin, int64_t end) {
    int32_t first_out_of_range = INT32_MAX;
    for (int64_t s = 0; s < batch.slots; ++s) {
      const int64_t last = std::min<int64_t>(end, batch.offsets[(s + 1) * batch.samples]);
      for (int64_t p = std::max<int64_t>(begin, batch.offsets[s * batch.samples]); p < last; ++p) {
        rows[p] = index.row(batch.keys[p], batch.slot_number(s));
        if (rows[p] == 0 && !index.elsewhere(batch.slot_number(s)))
          first_out_of_range = std::min(first_out_of_range, static_cast<int32_t>(p));
      }
    }
    const std::atomic_ref<int32_t> first(out_of_range->first);
    int32_t seen = first.load();
    while (first_out_of_range < seen && !first.compare_exchange_weak(seen, first_out_of_range)) {
    }
  });
  std::fill(rows + count, rows + batch.key_capacity, 0);
}

void report_out_of_range(Context&, KeyBatch batch, OutOfRangeState* out_of_range, OutOfRangeKey* host) {
  if (out_of_range->reported || out_of_range->first == INT32_MAX) return;
  host->key = batch.keys[out_of_range->first];
  host->slot = batch.slot_of(out_of_range->first);
  std::atomic_ref<int32_t>(host->found).store(1, std::memory_order_release);
  out_of_range->reported = 1;
}

}  // namespace cpu
}  // namespace hctr::ops
