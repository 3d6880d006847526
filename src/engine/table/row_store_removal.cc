// Removal of rows from a store: the choice of rows, and the compaction of all arrays with an element per row.
#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/spec/setting_words.h"
#include "engine/table/row_store.h"

namespace hctr {

void RowStore::check_limit(const Progress& now) const {
  if (row_limit_ == 0 || in_all_tiers(now) <= most_kept()) return;
  throw Error(Kind::data, cat(arrays_.label(), ": the data hold more keys than the ", row_limit_, " rows that \"",
                              limit_setting_, "\" allows (", in_all_tiers(now) - shared_rows(), " or more); raise it, ",
                              setting_words(budget_.limits()).full));
}

int64_t RowStore::evict(const BatchRows& batch) {
  int64_t admitted = 0, from_disk = 0;
  const int64_t gone =
      remove_rows(batch, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
        const uint32_t* scores = policy_.when_full == WhenFull::evict_lru ? arrays_.access_stats().last_seen
                                                                          : arrays_.access_stats().occurrences;
        const ops::RowRanks ranks{arrays_.keys(), arrays_.slots(), scores};
        ops::set_fates(ctx, batch.rows, batch.count, ops::Fate::stays, memory.fates);
        admitted = admitted_leave(ctx, memory, now);
        int64_t staying = 0;
        ops::count_fates(ctx, ops::Fate::stays, now.rows, memory, staying);
        const int64_t left = std::max(RowPolicy::rows_left(row_limit_), staying), on_disk = rows_on_disk();
        int64_t leaving = std::max<int64_t>(0, now.rows - free_rows() + on_disk - admitted - left);
        if (on_disk > 0) {
          const int64_t in_memory = tier_->remove_lowest(ctx, ranks, now.rows, leaving, memory);
          from_disk = leaving - in_memory;
          leaving = in_memory;
        }
        ops::lowest_rows_leave(ctx, ranks, index_.view().first_row, now.rows, leaving, memory);
      });
  return gone - admitted + from_disk;
}

int64_t RowStore::refuse_newest(const BatchRows& batch) {
  return remove_rows(batch, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    const ops::RowRanks ranks{arrays_.keys(), arrays_.slots(), nullptr, true};
    ops::lowest_rows_leave(ctx, ranks, int64_t{now.finished} + 1, now.rows,
                           now.rows - free_rows() + rows_on_disk() - most_kept(), memory);
  });
}

int64_t RowStore::expire(int64_t step) {
  int64_t admitted = 0;
  const int64_t gone = remove_rows({}, [&](Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) {
    admitted = admitted_leave(ctx, memory, now);
    ops::rows_below_leave(ctx, arrays_.access_stats().last_seen, static_cast<uint32_t>(step), index_.view().first_row,
                          now.rows, memory.fates);
  });
  return gone - admitted + (tier_ ? tier_->disk().expire(static_cast<uint32_t>(step)) : 0);
}

int64_t RowStore::admitted_leave(Context& ctx, const ops::RemovalMemory& memory, const ops::IndexState& now) const {
  int64_t count = 0;
  if (!policy_.of_candidates) return count;
  ops::rows_below_leave(ctx, arrays_.access_stats().occurrences, 1, index_.view().first_row, now.rows, memory.fates);
  ops::count_fates(ctx, ops::Fate::leaves, now.rows, memory, count);
  return count;
}

int64_t RowStore::trim() {
  const Progress now = index_.progress();
  if (now.rows + index_.queued(now) * batch_keys_ <= row_limit_ || index_.wait_for_all().rows <= row_limit_) return 0;
  return evict({});
}

int64_t RowStore::remove_rows(const BatchRows& batch, const Choose& choose) {
  ops::IndexState now = index_.state();  // waits
  const int64_t rows = now.rows;
  Context ctx(runtime_, runtime_.compute_stream());
  HCTR_EXPECT(rows <= arrays_.capacity() && ops::removal_bytes(ctx.device(), rows) <= index_.bytes(), arrays_.label(),
              ": ", rows, " rows, capacity ", arrays_.capacity());
  // The index is rebuilt below, so its memory can serve as scratch.
  const ops::RemovalMemory memory(index_.scratch(), rows);
  if (free_rows() == 0)
    zero_bytes(ctx.stream(), memory.fates, static_cast<size_t>(rows) + 1);
  else
    copy_bytes(ctx.stream(), memory.fates, arrays_.left(), static_cast<size_t>(rows) + 1);
  try {
    choose(ctx, memory, now);
  } catch (const Error&) {  // rows are unchanged; restore the index, too
    index_.build();
    throw;
  }
  ops::RowMoves moves;
  ops::plan_moves(ctx, rows, memory, moves);
  for (Column& column : arrays_.columns()) {
    ops::move_rows(ctx, moves, column.memory.data(), column.bytes_per_row);
    // Freed rows are zeroed, because rows assigned later expect zeros. With a disk, all numbers of rows are written
    // when they get a key.
    if (column.numbers && arrays_.init().all_states) continue;
    column.memory.zero(ctx.stream(), column.bytes_to(moves.rows),
                       static_cast<size_t>((rows - moves.rows) * column.bytes_per_row));
  }
  changes_.follow(ctx, moves, rows);
  ops::follow_moves(ctx, moves, memory.fates, batch.rows, batch.count, batch.instead, batch.replaced);

  const int64_t gone = rows - moves.rows - free_rows();
  if (tier_) tier_->note_closed(moves.count);
  now.rows = now.ready = now.finished = static_cast<uint32_t>(moves.rows);
  index_.set_state(now);
  index_.build();
  return gone;
}

}  // namespace hctr
