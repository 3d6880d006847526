#include "engine/table/remove_rows.h"

#include <algorithm>

namespace hctr {
namespace {

/// In a store of candidates, selects the admitted keys for removal. Returns how many.
int64_t admitted_leave(RowStore& store, Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
  int64_t count = 0;
  if (!store.policy().rules().of_candidates) return count;
  ops::rows_below_leave(ctx, store.rows().arrays().access_stats().occurrences, 1, store.rows().index().view().first_row,
                        now.rows, memory.fates);
  ops::count_fates(ctx, ops::Fate::leaves, now.rows, memory, count);
  return count;
}

/// Ranks rows by the access statistics that the policy uses. Ties are resolved by (slot, key).
ops::RowRanks ranks_of(const RowArrays& arrays, WhenFull when_full) {
  const ops::AccessStats& stats = arrays.access_stats();
  return {arrays.keys(), arrays.slots(), when_full == WhenFull::evict_lru ? stats.last_seen : stats.occurrences};
}

}  // namespace

int64_t evict_rows(RowStore& store, const RowsOfBatch& batch) {
  int64_t admitted = 0, from_disk = 0;
  const auto choose = [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    const ops::RowRanks ranks = ranks_of(store.rows().arrays(), store.policy().rules().when_full);
    ops::set_fates(ctx, batch.rows, batch.count, ops::Fate::stays, memory.fates);
    admitted = admitted_leave(store, ctx, memory, now);
    int64_t staying = 0;
    ops::count_fates(ctx, ops::Fate::stays, now.rows, memory, staying);
    const RowCounts rows = store.counted(now.rows);
    int64_t leaving = store.policy().rows_to_evict(rows, admitted, staying);
    if (rows.on_disk > 0) {
      const int64_t in_memory = store.tiers().disk()->remove_lowest(ctx, ranks, now.rows, leaving, memory);
      from_disk = leaving - in_memory;
      leaving = in_memory;
    }
    ops::lowest_rows_leave(ctx, ranks, store.rows().index().view().first_row, now.rows, leaving, memory);
  };
  return store.rows().remove(batch, choose, store.tiers()) - admitted + from_disk;
}

int64_t refuse_newest_rows(RowStore& store, const RowsOfBatch& batch) {
  const auto choose = [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    const RowArrays& arrays = store.rows().arrays();
    const ops::RowRanks ranks{arrays.keys(), arrays.slots(), nullptr, true};
    ops::lowest_rows_leave(ctx, ranks, int64_t{now.finished} + 1, now.rows,
                           store.policy().rows_to_refuse(store.counted(now.rows)), memory);
  };
  return store.rows().remove(batch, choose, store.tiers());
}

int64_t expire_rows(RowStore& store, int64_t step) {
  int64_t admitted = 0;
  const auto choose = [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    admitted = admitted_leave(store, ctx, memory, now);
    ops::rows_below_leave(ctx, store.rows().arrays().access_stats().last_seen, static_cast<uint32_t>(step),
                          store.rows().index().view().first_row, now.rows, memory.fates);
  };
  const int64_t gone = store.rows().remove({}, choose, store.tiers());
  RowDiskTier* const disk = store.tiers().disk();
  return gone - admitted + (disk ? disk->disk().expire(static_cast<uint32_t>(step)) : 0);
}

int64_t remove_listed_rows(RowStore& store, const int32_t* rows, int64_t count) {
  const auto choose = [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState&) {
    ops::set_fates(ctx, rows, count, ops::Fate::leaves, memory.fates);
  };
  return store.rows().remove({}, choose, store.tiers());
}

int64_t trim_rows(RowStore& store) {
  RowIndex& index = store.rows().index();
  const RowIndex::Progress now = index.progress();
  const int64_t limit = store.policy().limit();
  if (now.rows + index.queued(now) * store.rows().batches().keys <= limit || index.wait_for_all().rows <= limit)
    return 0;
  return evict_rows(store, {});
}

}  // namespace hctr
