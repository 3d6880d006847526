#include "ops/embedding/row_marks.h"

#include <algorithm>
#include <limits>

namespace hctr::ops {

void mark_rows(Context& ctx, RowGroups groups, int64_t key_capacity, RowMarks marks) {
  HCTR_EXPECT(ctx.state(), "mark_rows without the step's scalars");
  HCTR_ON_DEVICE(ctx, mark_rows(ctx, groups, key_capacity, marks));
}
void count_rows(Context& ctx, KeyBatch batch, const int32_t* rows, RowMarks marks) {
  HCTR_EXPECT(ctx.state(), "count_rows without the step's scalars");
  HCTR_ON_DEVICE(ctx, count_rows(ctx, batch, rows, marks));
}

namespace cpu {

void mark_rows(Context& ctx, RowGroups groups, int64_t key_capacity, RowMarks marks) {
  const uint32_t step = marks.step_of(*ctx.state());
  ctx.threads().parallel_for(groups.counts->runs, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; ++run) {
      const int32_t first = groups.run_begin[run], row = groups.rows[first];
      if (marks.last_seen) marks.last_seen[row] = step;
      if (marks.occurrences) {
        const auto more = static_cast<uint32_t>(groups.run_end(run, key_capacity) - first);
        marks.occurrences[row] += std::min(more, std::numeric_limits<uint32_t>::max() - marks.occurrences[row]);
      }
    }
  });
}

void count_rows(Context& ctx, KeyBatch batch, const int32_t* rows, RowMarks marks) {
  const uint32_t step = marks.step_of(*ctx.state());
  for (int64_t p = 0; p < batch.size(); ++p) {
    if (rows[p] == 0) continue;
    if (marks.last_seen) marks.last_seen[rows[p]] = step;
    if (marks.occurrences) ++marks.occurrences[rows[p]];
  }
}

}  // namespace cpu
}  // namespace hctr::ops
