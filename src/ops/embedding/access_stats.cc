#include "ops/embedding/access_stats.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace hctr::ops {

void record_access(Context& ctx, RowGroups groups, int64_t key_capacity, AccessStats stats) {
  HCTR_EXPECT(ctx.state(), "record_access without the step's scalars");
  HCTR_ON_DEVICE(ctx, record_access(ctx, groups, key_capacity, stats));
}
void record_access_by_key(Context& ctx, KeyBatch batch, const int32_t* rows, AccessStats stats) {
  HCTR_EXPECT(ctx.state(), "record_access_by_key without the step's scalars");
  HCTR_ON_DEVICE(ctx, record_access_by_key(ctx, batch, rows, stats));
}

namespace cpu {

void record_access(Context& ctx, RowGroups groups, int64_t key_capacity, AccessStats stats) {
  const uint32_t step = stats.step_of(*ctx.state());
  ctx.threads().parallel_for(groups.counts->runs, 2048, [&](int64_t begin, int64_t end) {
    uint64_t reads[2] = {};
    for (int64_t run = begin; run < end; ++run) {
      const int32_t first = groups.run_begin[run], row = groups.rows[first];
      if (stats.uses) {
        stats.uses[row] = AccessStats::one_more(stats.uses[row]);
        const auto count = static_cast<uint64_t>(groups.run_end(run, key_capacity) - first);
        reads[0] += count;
        if (row < stats.first_on_host) reads[1] += count;
      }
      if (stats.last_seen) stats.last_seen[row] = step;
      if (stats.changed) stats.changed[row] = 1;
      if (stats.occurrences) {
        const auto more = static_cast<uint32_t>(groups.run_end(run, key_capacity) - first);
        stats.occurrences[row] += std::min(more, std::numeric_limits<uint32_t>::max() - stats.occurrences[row]);
      }
    }
    for (int i = 0; i < 2 && stats.uses; ++i) std::atomic_ref<uint64_t>(stats.reads[i]).fetch_add(reads[i]);
  });
}

void record_access_by_key(Context& ctx, KeyBatch batch, const int32_t* rows, AccessStats stats) {
  const uint32_t step = stats.step_of(*ctx.state());
  for (int64_t p = 0; p < batch.size(); ++p) {
    if (rows[p] == 0) continue;
    if (stats.last_seen) stats.last_seen[rows[p]] = step;
    if (stats.changed) stats.changed[rows[p]] = 1;
    if (stats.occurrences) ++stats.occurrences[rows[p]];
  }
}

}  // namespace cpu
}  // namespace hctr::ops
