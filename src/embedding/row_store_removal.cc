// Removal of rows from a store: the choice of rows, and the compaction of all arrays with an element per row.
#include <algorithm>

#include "device/copy.h"
#include "embedding/row_store.h"

namespace hctr {

int64_t RowStore::evict(const BatchRows& batch) {
  int64_t admitted = 0;
  const int64_t gone =
      remove_rows(batch, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
        const uint32_t* scores =
            policy_.when_full == WhenFull::evict_lru ? access_stats_.last_seen : access_stats_.occurrences;
        const ops::RowRanks ranks{index_.row_keys, index_.row_slots, scores};
        ops::keep_rows(ctx, batch.rows, batch.count, memory.fates);
        admitted = admitted_leave(ctx, memory, now);
        int64_t staying = 0;
        ops::count_fates(ctx, ops::Fate::stays, now.rows, memory, staying);
        const int64_t left = std::max(RowPolicy::rows_left(row_limit_), staying);
        ops::lowest_rows_leave(ctx, ranks, index_.first_row, now.rows, std::max<int64_t>(0, now.rows - admitted - left),
                               memory);
      });
  return gone - admitted;
}

int64_t RowStore::refuse_newest(const BatchRows& batch) {
  return remove_rows(batch, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    const ops::RowRanks ranks{index_.row_keys, index_.row_slots, nullptr, true};
    ops::lowest_rows_leave(ctx, ranks, int64_t{now.finished} + 1, now.rows, now.rows - most_kept(), memory);
  });
}

int64_t RowStore::expire(int64_t step) {
  int64_t admitted = 0;
  const int64_t gone = remove_rows({}, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    admitted = admitted_leave(ctx, memory, now);
    ops::rows_below_leave(ctx, access_stats_.last_seen, static_cast<uint32_t>(step), index_.first_row, now.rows,
                          memory.fates);
  });
  return gone - admitted + (disk_ ? disk_->expire(static_cast<uint32_t>(step)) : 0);
}

int64_t RowStore::admitted_leave(Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) const {
  int64_t count = 0;
  if (!policy_.of_candidates) return count;
  ops::rows_below_leave(ctx, access_stats_.occurrences, 1, index_.first_row, now.rows, memory.fates);
  ops::count_fates(ctx, ops::Fate::leaves, now.rows, memory, count);
  return count;
}

int64_t RowStore::trim() {
  const Progress now = progress();
  if (now.rows + static_cast<int64_t>(batches_ - now.batches) * batch_keys_ <= row_limit_ ||
      wait_for_all().rows <= row_limit_)
    return 0;
  return evict({});
}

int64_t RowStore::remove_rows(const BatchRows& batch, const Choose& choose) {
  ops::IndexState now = state();  // waits
  const int64_t rows = now.rows;
  Context ctx(runtime_, runtime_.compute_stream());
  HCTR_EXPECT(rows <= capacity_ && ops::removal_bytes(ctx.device(), rows) <= entries_.bytes(), label_, ": ", rows,
              " rows, capacity ", capacity_);
  // The index is rebuilt below, so its memory can serve as scratch.
  const ops::RemovalMemory memory(entries_.data(), rows);
  zero_bytes(ctx.stream(), memory.fates, static_cast<size_t>(rows) + 1);
  try {
    choose(ctx, memory, now);
  } catch (const Error&) {  // such as a full disk: the rows are as they were, and the index is to be too
    zero_bytes(ctx.stream(), entries_.data(), static_cast<size_t>(entry_count_) * sizeof(ops::IndexEntry));
    ops::index_rebuild(ctx, index_);
    ctx.stream().synchronize();
    throw;
  }
  ops::RowMoves moves;
  ops::plan_moves(ctx, rows, memory, moves);
  for (Column& column : columns_) {
    ops::move_rows(ctx, moves, column.memory.data(), column.bytes_per_row);
    // Freed rows are zeroed, since rows that are assigned later expect new memory.
    column.memory.zero(ctx.stream(), column.bytes_to(moves.rows),
                       static_cast<size_t>((rows - moves.rows) * column.bytes_per_row));
  }
  if (marks_) {
    ops::move_rows(ctx, moves, marks_->data(), 1);
    zero_bytes(ctx.stream(), marks_->data() + moves.rows + 1, static_cast<size_t>(rows - moves.rows));
    // Models go by key, and marks have gone with their rows. Checkpoints go by number, unless rows may be on a disk:
    // the base has other rows there.
    if (!base_places_)
      ops::mark_rows(ctx, moves.to, moves.count, reinterpret_cast<uint8_t*>(marks_->data()),
                     ops::kChangedSinceCheckpoint);
    if (base_ && !base_places_) {
      base_->rows = std::min(base_->rows, moves.rows);
      base_->keys_moved = base_->keys_moved || moves.count > 0;
    }
  }
  ops::follow_moves(ctx, moves, memory.fates, batch.rows, batch.count, batch.instead, batch.replaced);

  now.rows = now.ready = now.finished = static_cast<uint32_t>(moves.rows);
  copy_bytes(ctx.stream(), state_.data(), &now, sizeof now);
  zero_bytes(ctx.stream(), entries_.data(), static_cast<size_t>(entry_count_) * sizeof(ops::IndexEntry));
  ops::index_rebuild(ctx, index_);
  ctx.stream().synchronize();
  set_rows(now);
  return rows - moves.rows;
}

}  // namespace hctr
