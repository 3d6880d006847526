#include "ops/embedding/access_stats.h"

#include <algorithm>
#include <limits>

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
    for (int64_t run = begin; run < end; ++run) {
      const int32_t first = groups.run_begin[run], row = groups.rows[first];
      if (stats.last_seen) stats.last_seen[row] = step;
      if (stats.changed) stats.changed[row] = kRowChanged;
      if (stats.occurrences) {
        const auto more = static_cast<uint32_t>(groups.run_end(run, key_capacity) - first);
        stats.occurrences[row] += std::min(more, std::numeric_limits<uint32_t>::max() - stats.occurrences[row]);
      }
    }
  });
}

void record_access_by_key(Context& ctx, KeyBatch batch, const int32_t* rows, AccessStats stats) {
  const uint32_t step = stats.step_of(*ctx.state());
  for (int64_t p = 0; p < batch.size(); ++p) {
    if (rows[p] == 0) continue;
    if (stats.last_seen) stats.last_seen[rows[p]] = step;
    if (stats.changed) stats.changed[rows[p]] = kRowChanged;
    if (stats.occurrences) ++stats.occurrences[rows[p]];
  }
}

}  // namespace cpu
}  // namespace hctr::ops
