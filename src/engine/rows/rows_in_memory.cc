#include "engine/rows/rows_in_memory.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "core/device/copy_bytes.h"

namespace hctr {

RowsInMemory::RowsInMemory(Runtime& runtime, RowMemory& budget, const TableSpec& spec, DirectKeys keys,
                           const Sizes& sizes)
    : runtime_(runtime),
      keys_(std::move(keys)),
      batches_{sizes.batch_keys, sizes.batches_ahead},
      most_rows_(sizes.most_rows),
      removes_(sizes.removes),
      arrays_(runtime, budget, spec, sizes.on_disk, sizes.addresses),
      index_(arrays_,
             keys_.empty()
                 ? arrays_.most_rows() + (batches_.ahead + 1) * std::max(batches_.keys, spec.most_key_capacity)
                 : 0,
             removes_ ? ops::removal_bytes(runtime.device(), arrays_.most_rows()) : 0),
      bits_(arrays_, most_rows_, sizes.on_disk),
      spans_(runtime.device(), keys_.spans.size() * sizeof(ops::KeySpan)) {
  if (keys_.empty()) return;
  copy_bytes(runtime_.compute_stream(), spans_.data(), keys_.spans.data(), spans_.bytes());
  arrays_.set_direct(
      {reinterpret_cast<const ops::KeySpan*>(spans_.data()), static_cast<int64_t>(keys_.spans.size()), keys_.by_slot});
}

void RowsInMemory::grow_besides_numbers(int64_t rows) {
  arrays_.grow_besides_numbers(rows);
  if (removes_)
    index_.reserve_scratch(ops::removal_bytes(runtime_.device(), rows));  // removal uses the index memory as scratch
}

void RowsInMemory::open(int64_t rows) {
  arrays_.set_capacity(rows);
  index_.set(&ops::IndexState::row_capacity, static_cast<uint32_t>(rows));
}

void RowsInMemory::create_all() {
  const int64_t rows = keys_.rows();
  ops::IndexState state{.mask = 0,
                        .row_capacity = static_cast<uint32_t>(rows),
                        .rows = static_cast<uint32_t>(rows),
                        .ready = 0,
                        .finished = 0,
                        .batches = 0,
                        .marks = 0};
  index_.put_state(state);
  Context ctx(runtime_, runtime_.compute_stream());
  ops::init_new_rows(ctx, index_.view(), arrays_.init(), arrays_.data());
  state.ready = state.finished = state.rows;
  index_.set_state(state);
}

void RowsInMemory::add_shared_row(const std::string& name) {
  ops::RowInit init = arrays_.init();
  init.key = random_key(runtime_.options().seed, random_stream("shared row:" + name));
  init.slot_bounds = nullptr;
  Context ctx(runtime_, runtime_.compute_stream());
  // key 0 seeds the random initial values of the shared row
  zero_bytes(ctx.stream(), arrays_.keys() + 1, sizeof(int64_t));
  if (arrays_.slots()) zero_bytes(ctx.stream(), arrays_.slots() + 1, sizeof(int32_t));
  index_.set(&ops::IndexState::rows, uint32_t{1});
  ops::init_new_rows(ctx, index_.view(), init, arrays_.data());
  index_.set(&ops::IndexState::ready, uint32_t{1});
  index_.set(&ops::IndexState::finished, uint32_t{1});
  index_.share_first_row();
  index_.tell_host({0, 1});
}

void RowsInMemory::assign(std::span<const int64_t> keys, std::span<const int32_t> slots) {
  HCTR_EXPECT(!arrays_.slots() || slots.size() == keys.size(), arrays_.label(), ": ", keys.size(), " keys, ",
              slots.size(), " slots");
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, arrays_.keys() + 1, keys.data(), keys.size_bytes());
  if (arrays_.slots()) copy_bytes(stream, arrays_.slots() + 1, slots.data(), slots.size_bytes());
  ops::IndexState now = index_.state();
  now.rows = static_cast<uint32_t>(keys.size());
  index_.put_state(now);
  Context ctx(runtime_, stream);
  ops::init_new_rows(ctx, index_.view(), arrays_.init(), arrays_.data());
  now.ready = now.finished = now.rows;
  index_.put_state(now);
  index_.build();
  index_.tell_host({now.batches, now.rows});
}

int64_t RowsInMemory::remove(const RowsOfBatch& batch, const Choose& choose, RowFollower& follower) {
  ops::IndexState now = index_.state();  // waits for queued work
  const int64_t rows = now.rows, free_rows = free_.count();
  Context ctx(runtime_, runtime_.compute_stream());
  HCTR_EXPECT(rows <= arrays_.capacity(), arrays_.label(), ": ", rows, " rows, capacity ", arrays_.capacity());
  // The index is rebuilt below, so its memory can serve as scratch here if it is large enough.
  const size_t bytes = ops::removal_bytes(ctx.device(), rows);
  const Buffer own(ctx.device(), bytes <= index_.bytes() ? 0 : bytes);
  const ops::RemovalMemory memory(own.bytes() == 0 ? index_.scratch() : own.data(), rows);
  if (free_rows == 0)
    zero_bytes(ctx.stream(), memory.fates, static_cast<size_t>(rows) + 1);
  else
    copy_bytes(ctx.stream(), memory.fates, arrays_.left(), static_cast<size_t>(rows) + 1);
  try {
    choose(ctx, memory, now);
  } catch (const Error&) {  // the rows are unchanged, but the index must be rebuilt, because its memory was scratch
    index_.build();
    throw;
  }
  ops::RowMoves moves;
  ops::plan_moves(ctx, rows, memory, moves);
  for (RowColumn& column : arrays_.columns()) {
    ops::move_rows(ctx, moves, column.memory.data(), column.bytes_per_row);
    // Zero the freed rows, because rows that are assigned later expect zeroed memory. With a disk tier, vectors and
    // optimizer states need no zeros, because they are written whenever a row gets a key.
    if (column.numbers && arrays_.init().all_states) continue;
    column.memory.zero(ctx.stream(), column.bytes_to(moves.rows),
                       static_cast<size_t>((rows - moves.rows) * column.bytes_per_row));
  }
  follower.follow(ctx, moves, rows);
  ops::follow_moves(ctx, moves, memory.fates, batch.rows, batch.count, batch.instead, batch.replaced);

  free_.clear();
  now.rows = now.ready = now.finished = static_cast<uint32_t>(moves.rows);
  index_.set_state(now);
  index_.build();
  return rows - moves.rows - free_rows;
}

}  // namespace hctr
