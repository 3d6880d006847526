#include "ops/embedding/direct_index.h"

#include <algorithm>
#include <atomic>

namespace hctr::ops {

void direct_rows(Context& ctx, DirectIndex index, KeyBatch batch, StrayState* strays, int32_t* rows) {
  HCTR_ON_DEVICE(ctx, direct_rows(ctx, index, batch, strays, rows));
}
void tell_stray(Context& ctx, KeyBatch batch, StrayState* strays, Stray* host) {
  HCTR_ON_DEVICE(ctx, tell_stray(ctx, batch, strays, host));
}

namespace cpu {

void direct_rows(Context& ctx, DirectIndex index, KeyBatch batch, StrayState* strays, int32_t* rows) {
  const int64_t count = batch.size();
  ctx.threads().parallel_for(count, 8192, [&](int64_t begin, int64_t end) {
    int32_t first_stray = INT32_MAX;
    for (int64_t s = 0; s < batch.slots; ++s) {
      const int64_t last = std::min<int64_t>(end, batch.offsets[(s + 1) * batch.samples]);
      for (int64_t p = std::max<int64_t>(begin, batch.offsets[s * batch.samples]); p < last; ++p) {
        rows[p] = index.row(batch.keys[p], batch.slot_number(s));
        if (rows[p] == 0 && !index.elsewhere(batch.slot_number(s)))
          first_stray = std::min(first_stray, static_cast<int32_t>(p));
      }
    }
    const std::atomic_ref<int32_t> first(strays->first);
    int32_t seen = first.load();
    while (first_stray < seen && !first.compare_exchange_weak(seen, first_stray)) {
    }
  });
  std::fill(rows + count, rows + batch.key_capacity, 0);
}

void tell_stray(Context&, KeyBatch batch, StrayState* strays, Stray* host) {
  if (strays->told || strays->first == INT32_MAX) return;
  host->key = batch.keys[strays->first];
  host->slot = batch.slot_of(strays->first);
  std::atomic_ref<int32_t>(host->found).store(1, std::memory_order_release);
  strays->told = 1;
}

}  // namespace cpu
}  // namespace hctr::ops
