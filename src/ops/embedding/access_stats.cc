#include "ops/embedding/access_stats.h"

namespace hctr::ops {

void record_access(Context& ctx, RowGroups groups, int64_t key_capacity, AccessStats stats) {
  HCTR_EXPECT(ctx.state(), "record_access() needs a step state");
  HCTR_ON_DEVICE(ctx, record_access(ctx, groups, key_capacity, stats));
}
void record_access_by_key(Context& ctx, KeyBatch batch, const int32_t* rows, AccessStats stats) {
  HCTR_EXPECT(ctx.state(), "record_access_by_key() needs a step state");
  HCTR_ON_DEVICE(ctx, record_access_by_key(ctx, batch, rows, stats));
}

namespace cpu {

void record_access(Context& ctx, RowGroups groups, int64_t key_capacity, AccessStats stats) {
  const uint32_t step = stats.step_of(*ctx.state());
  ctx.threads().parallel_for(groups.counts->runs, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) stats.record_run(groups, run, key_capacity, step);
  });
}

void record_access_by_key(Context& ctx, KeyBatch batch, const int32_t* rows, AccessStats stats) {
  const uint32_t step = stats.step_of(*ctx.state());
  for (int64_t p = 0; p < batch.size(); ++p) {
    if (rows[p] == 0) continue;
    stats.mark(rows[p], step);
    if (stats.occurrences) ++stats.occurrences[rows[p]];
  }
}

}  // namespace cpu
}  // namespace hctr::ops
