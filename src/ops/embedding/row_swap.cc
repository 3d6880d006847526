#include "ops/embedding/row_swap.h"

#include <algorithm>
#include <atomic>

namespace hctr::ops {

SwapPlan plan_swaps(const UseCounts& on_device, const UseCounts& on_host, int64_t most, bool always) {
  SwapPlan plan;
  int hot = 255, cold = 0;
  plan.hot_limit = plan.cold_limit = -1;
  // hot_left: host rows with `hot` uses that are not in the plan yet; cold_left: the same for device rows with `cold`
  // uses
  int64_t hot_left = on_host[255], cold_left = on_device[0];
  while (plan.count < most) {
    while (hot_left == 0 && hot > 0) hot_left = on_host[static_cast<size_t>(--hot)];
    while (cold_left == 0 && cold < 255) cold_left = on_device[static_cast<size_t>(++cold)];
    const int64_t more = std::min({hot_left, cold_left, most - plan.count});
    if (more == 0 || (!always && hot < 2 * cold + 2)) break;
    if (plan.hot_limit != hot) plan.hot_beyond = plan.count;
    if (plan.cold_limit != cold) plan.cold_beyond = plan.count;
    plan.hot_limit = hot;
    plan.cold_limit = cold;
    plan.count += more;
    hot_left -= more;
    cold_left -= more;
  }
  return plan;
}

size_t swap_scratch_bytes(Device device, int64_t rows) {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) return cuda::swap_scratch_bytes(rows);
  return 0;
}

void add_uses(Context& ctx, RowGroups groups, int64_t key_capacity, RowUses to) {
  HCTR_ON_DEVICE(ctx, add_uses(ctx, groups, key_capacity, to));
}
void count_uses(Context& ctx, const uint8_t* uses, int64_t first, int64_t last, std::byte* scratch, UseCounts& counts) {
  HCTR_ON_DEVICE(ctx, count_uses(ctx, uses, first, last, scratch, counts));
}
void select_by_uses(Context& ctx, const uint8_t* uses, int64_t first, int64_t last, int low, int high, int64_t most,
                    std::byte* scratch, int32_t* out) {
  if (most > 0) HCTR_ON_DEVICE(ctx, select_by_uses(ctx, uses, first, last, low, high, most, scratch, out));
}
void swap_rows(Context& ctx, const int32_t* one, const int32_t* other, int64_t count, void* column, int64_t bytes) {
  HCTR_ON_DEVICE(ctx, swap_rows(ctx, one, other, count, column, bytes));
}
void note_places(Context& ctx, const int32_t* rows, int64_t count, const int32_t* numbers, int32_t* places) {
  HCTR_ON_DEVICE(ctx, note_places(ctx, rows, count, numbers, places));
}
void find_places(Context& ctx, const int32_t* places, int64_t count, int32_t* rows) {
  HCTR_ON_DEVICE(ctx, find_places(ctx, places, count, rows));
}
void mark_rows(Context& ctx, const int32_t* rows, int64_t count, uint8_t* marks, uint8_t bits) {
  HCTR_ON_DEVICE(ctx, mark_rows(ctx, rows, count, marks, bits));
}
void halve_uses(Context& ctx, int64_t rows, uint8_t* uses) { HCTR_ON_DEVICE(ctx, halve_uses(ctx, rows, uses)); }

namespace cpu {

void add_uses(Context& ctx, RowGroups groups, int64_t key_capacity, RowUses to) {
  ctx.threads().parallel_for(groups.counts->runs, 2048, [&](int64_t begin, int64_t end) {
    uint64_t reads[2] = {};
    for (int64_t run = begin; run < end; ++run) {
      const int32_t first = groups.run_begin[run], row = groups.rows[first];
      const auto count = static_cast<uint64_t>(groups.run_end(run, key_capacity) - first);
      to.uses[row] = RowUses::one_more(to.uses[row]);
      reads[0] += count;
      if (row < to.first_on_host) reads[1] += count;
    }
    for (int i = 0; i < 2; ++i) std::atomic_ref<uint64_t>(to.reads[i]).fetch_add(reads[i]);
  });
}

void count_uses(Context&, const uint8_t* uses, int64_t first, int64_t last, std::byte*, UseCounts& counts) {
  counts.fill(0);
  for (int64_t row = first; row <= last; ++row) ++counts[uses[row]];
}

void select_by_uses(Context&, const uint8_t* uses, int64_t first, int64_t last, int low, int high, int64_t most,
                    std::byte*, int32_t* out) {
  for (int64_t row = first; row <= last && most > 0; ++row) {
    if (uses[row] < low || uses[row] > high) continue;
    *out++ = static_cast<int32_t>(row);
    --most;
  }
  HCTR_EXPECT(most == 0, most, " of the requested rows with ", low, " to ", high, " uses do not exist");
}

void swap_rows(Context& ctx, const int32_t* one, const int32_t* other, int64_t count, void* column, int64_t bytes) {
  auto* const rows = static_cast<std::byte*>(column);
  ctx.threads().parallel_for(count, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::swap_ranges(rows + one[i] * bytes, rows + (one[i] + 1) * bytes, rows + other[i] * bytes);
  });
}

void note_places(Context&, const int32_t* rows, int64_t count, const int32_t* numbers, int32_t* places) {
  for (int64_t i = 0; i < count; ++i) places[numbers[rows[i]]] = rows[i];
}

void find_places(Context&, const int32_t* places, int64_t count, int32_t* rows) {
  for (int64_t i = 0; i < count; ++i) rows[i] = places[rows[i]];
}

void mark_rows(Context&, const int32_t* rows, int64_t count, uint8_t* marks, uint8_t bits) {
  for (int64_t i = 0; i < count; ++i) marks[rows[i]] |= bits;
}

void halve_uses(Context&, int64_t rows, uint8_t* uses) {
  for (int64_t row = 1; row <= rows; ++row) uses[row] /= 2;
}

}  // namespace cpu
}  // namespace hctr::ops
