#include "engine/exchange/replicated_rows.h"

#include <algorithm>
#include <utility>

#include "core/device/copy_bytes.h"
#include "engine/table/gather_rows.h"
#include "engine/table/saved_rows.h"
#include "ops/embedding/embedding_update.h"
#include "ops/embedding/mark_rows.h"

namespace hctr {
namespace {

/// Forbids row moves, because ranks exchange gradient sums by row number.
TableSpec with_equal_numbers(TableSpec spec) {
  spec.rows_move = false;
  return spec;
}

}  // namespace

ReplicatedRows::ReplicatedRows(Runtime& runtime, Communicator& comm, const TableSpec& spec, int ring_size)
    : runtime_(runtime),
      comm_(comm),
      table_(runtime, with_equal_numbers(spec), ring_size),
      rows_(std::max<int64_t>(1, table_.spec().fixed_keys ? table_.spec().row_limit : table_.spec().direct.rows())) {
  HCTR_EXPECT(table_.spec().fixed_keys != !table_.spec().direct.empty(), "table '", table_.spec().name,
              "' has rows that cannot be replicated");
  const auto words = [&](int64_t count) { return arena_.add(TensorSpec(DType::i32, {count})); };
  struct Tickets {
    size_t rows, bags, run_begin, counts;
  };
  std::vector<Tickets> tickets;
  for (int s = 0; s < ring_size; ++s) {
    steps_.push_back({words(rows_ + 1), {}});
    tickets.push_back({words(rows_), words(rows_), words(rows_), words(sizeof(ops::GroupCounts) / sizeof(int32_t))});
  }
  sums_ = arena_.add(TensorSpec(DType::f32, {rows_ + 1, table_.spec().dim}));
  seen_ = words(rows_ + 1);
  scratch_ =
      words(static_cast<int64_t>(ops::group_marked_scratch_bytes(runtime.device(), rows_) / sizeof(int32_t)) + 1);
  in_context([&] { return cat("allocating the replicated rows of table '", table_.spec().name, "'"); },
             [&] { arena_.build(runtime.device()); });
  for (size_t s = 0; s < steps_.size(); ++s) {
    const auto at = [&](size_t ticket) { return arena_.get(ticket).data<int32_t>(); };
    steps_[s].touched = {.rows = at(tickets[s].rows),
                         .bags = at(tickets[s].bags),
                         .run_begin = at(tickets[s].run_begin),
                         .counts = reinterpret_cast<ops::GroupCounts*>(at(tickets[s].counts))};
  }
  zero(runtime.compute_stream(), arena_.get(seen_));
  runtime.compute_stream().synchronize();
}

int64_t ReplicatedRows::rows_now() const {
  return table_.spec().fixed_keys ? std::max<int64_t>(1, static_cast<int64_t>(keys_.size())) : rows_;
}

Tensor ReplicatedRows::of_rows(size_t ticket) const {
  const Tensor all = arena_.get(ticket);
  Shape shape = all.shape();
  shape[0] = rows_now() + 1;
  return Tensor(all.bytes(), TensorSpec(all.dtype(), shape), all.device());
}

void ReplicatedRows::prepare(Context& ctx, int buffer, Tensor keys, Tensor offsets) {
  table_.prepare(ctx, buffer, keys, offsets);
  const EmbeddingTable::Batch& batch = table_.prepared(buffer);
  const Step& step = steps_.at(static_cast<size_t>(buffer));
  const Tensor marks = of_rows(step.marks);
  ops::mark_batch(ctx, batch.groups, batch.keys.key_capacity, marks);
  comm_.all_reduce(ctx, marks, Reduce::max);
  ops::group_marked(ctx, marks, step.touched, arena_.get(scratch_).bytes());
  if (uint8_t* changed = table_.change_marks())  // mark also rows that only batches of other ranks touched
    ops::record_access(ctx, step.touched, rows_now(), {.changed = changed});
}

EmbeddingTable::Batch ReplicatedRows::find(Context& ctx, Tensor keys, Tensor offsets) {
  const EmbeddingTable::Batch batch = table_.find(ctx, keys, offsets);
  if (table_.spec().fixed_keys) ops::hide_unseen(ctx, arena_.get(seen_), batch.rows, batch.keys.key_capacity);
  return batch;
}

void ReplicatedRows::sum_gradients(Context& ctx, int buffer, Tensor dy) {
  const Tensor sums = of_rows(sums_);
  zero(ctx.stream(), sums);
  table_.sum_long_runs(ctx, buffer, dy);
  table_.sum_row_gradients(ctx, buffer, dy, sums);
  comm_.all_reduce(ctx, sums, Reduce::sum);
}

void ReplicatedRows::update(Context& ctx, int buffer) {
  const EmbeddingTable::Batch& batch = table_.prepared(buffer);
  const Step& step = steps_.at(static_cast<size_t>(buffer));
  const TableSpec& spec = table_.spec();
  const Tensor sums = of_rows(sums_);
  // Each touched row now has one summed gradient. Give update_rows() a batch with one sample per row, in which each
  // touched row occurs once.
  ops::KeyBatch by_row;
  by_row.slots = by_row.columns = 1;
  by_row.samples = rows_now() + 1;
  by_row.key_capacity = rows_now();
  const Tensor gradients(sums.bytes(), TensorSpec(DType::f32, {rows_now() + 1, 1, spec.dim}), sums.device());
  if (!table_.frozen())
    ops::update_rows(ctx, spec.optimizer, by_row, step.touched, ops::Combiner::sum, gradients, nullptr, table_.data());
  if (spec.fixed_keys)
    ops::note_seen(ctx, batch.rows_after, of_rows(step.marks), of_rows(seen_),
                   table_.frozen() ? nullptr : table_.data().touched);
  table_.end_step(ctx, buffer);
}

std::vector<int32_t> ReplicatedRows::seen() {
  runtime_.prepare_stream().synchronize();
  return to_host<int32_t>(runtime_.compute_stream(), arena_.get(seen_));
}

std::vector<uint8_t> ReplicatedRows::have_rows(std::span<const SlotKey> keys) {
  if (!table_.spec().fixed_keys) return table_.have_rows(keys);
  std::vector<uint8_t> found;
  const std::vector<int32_t> known = has_rows() ? seen() : std::vector<int32_t>();
  for (const auto& [slot, key] : keys) {
    const auto index = index_of(key, slot);
    found.push_back(index && known[*index + 1] != 0);
  }
  return found;
}

int64_t ReplicatedRows::rows_seen() {
  const std::vector<int32_t> known = seen();
  int64_t count = 0;
  for (size_t row = 1; row <= keys_.size(); ++row) count += known[row] != 0;
  return count;
}

void ReplicatedRows::assign_rows(std::vector<int64_t> keys, std::vector<int32_t> slots, bool seen) {
  keys_ = std::move(keys);
  slots_ = std::move(slots);
  table_.assign_rows(keys_, slots_);
  from_host(runtime_.compute_stream(), arena_.get(seen_), std::vector<int32_t>(static_cast<size_t>(rows_) + 1, seen));
}

std::optional<size_t> ReplicatedRows::index_of(int64_t key, int32_t slot) const {
  auto first = keys_.begin(), last = keys_.end();
  if (!slots_.empty()) {
    const auto of_slot = std::equal_range(slots_.begin(), slots_.end(), slot);
    first = keys_.begin() + (of_slot.first - slots_.begin());
    last = keys_.begin() + (of_slot.second - slots_.begin());
  }
  const auto found = std::lower_bound(first, last, key);
  if (found == last || *found != key) return std::nullopt;
  return static_cast<size_t>(found - keys_.begin());
}

void ReplicatedRows::import_rows(const RowBlock& block) {
  RowCopies held;
  std::vector<int32_t> known = seen();
  for (size_t i = 0; i < block.keys.size(); ++i)
    if (const auto index = index_of(block.keys[i], block.slots.empty() ? 0 : block.slots[i])) {
      held.add(block, i, table_.spec());
      known[*index + 1] = 1;
    }
  table_.import_rows(held.block());
  from_host(runtime_.compute_stream(), arena_.get(seen_), known);
}

void ReplicatedRows::export_rows(const std::function<void(const RowBlock&)>& sink, bool only_changed) {
  const std::vector<int32_t> known = seen();
  table_.export_rows({true, only_changed}, [&](const RowBlock& block) {
    RowCopies come;
    for (size_t i = 0; i < block.keys.size(); ++i)
      if (known[*index_of(block.keys[i], block.slots.empty() ? 0 : block.slots[i]) + 1] != 0)
        come.add(block, i, table_.spec());
    if (!come.empty()) sink(come.block());
  });
}

void ReplicatedRows::save_state(StateWriter to) {
  table_.save_state(to);
  if (!table_.spec().fixed_keys) return;
  to.list("assigned_keys", keys_);
  to.list("assigned_slots", slots_);
  std::vector<int32_t> known = seen();
  known.resize(keys_.size() + 1);
  to.list("seen", known);
}

ReplicatedRows::Keys ReplicatedRows::saved_keys(const StateReader& from) const {
  Keys saved;
  if (!from.has("assigned_keys")) return saved;
  from.list("assigned_keys", saved.keys);
  from.list("assigned_slots", saved.slots);
  const size_t keys = saved.keys.size(), slots = saved.slots.size();
  const std::string has = cat("table '", table_.spec().name, "': the checkpoint has ", keys, " replicated rows");
  if (static_cast<int64_t>(keys) > rows_)
    throw Error(Kind::data, cat(has, ", but this run has memory for only ", rows_));
  if (slots != keys && (slots > 0 || table_.spec().identity_by_slot))
    throw Error(Kind::data, cat(has, ", but slots for only ", slots, " of them"));
  for (size_t i = 1; i < keys; ++i)
    if (std::pair(slots > 0 ? saved.slots[i - 1] : 0, saved.keys[i - 1]) >=
        std::pair(slots > 0 ? saved.slots[i] : 0, saved.keys[i]))
      throw Error(Kind::data, cat(has, ", but key ", saved.keys[i], " at place ", i, " is out of order"));
  return saved;
}

void ReplicatedRows::expect_rows_of(const Keys& saved, const StateReader& from) const {
  const std::string& name = table_.spec().name;
  if (has_rows() && (saved.keys != keys_ || saved.slots != slots_))
    throw Error(Kind::data,
                cat("table '", name, "': the checkpoint has ", saved.keys.size(), " hot keys, which differ from the ",
                    keys_.size(), " hot keys of this run: the file of hot keys has changed"));
  const auto list_of = [&]<class T>(const char* array, std::vector<T>& values) {
    if (!from.has(array)) return;
    const StateArray& column = from.at(array);
    values = read_rows<T>(from, column, 0, column.shape.empty() ? 0 : column.shape[0], 1);
  };
  std::vector<int64_t> keys;
  std::vector<int32_t> slots;
  list_of("keys", keys);
  list_of("slots", slots);
  if (keys != saved.keys || (!slots.empty() && slots != saved.slots))
    throw Error(Kind::data, cat("table '", name, "': the checkpoint has ", keys.size(),
                                " replicated rows, which differ from the rows of its ", saved.keys.size(), " keys"));
}

std::vector<int32_t> ReplicatedRows::saved_seen(const StateReader& from) {
  std::vector<int32_t> known;
  if (from.has("seen")) from.list("seen", known);
  return known;
}

void ReplicatedRows::load_state(const StateReader& from) {
  if (!table_.spec().fixed_keys) return table_.load_state(from);
  Keys saved = saved_keys(from);
  std::vector<int32_t> known = saved_seen(from);
  if (known.size() != saved.keys.size() + 1)
    throw Error(Kind::data, cat("table '", table_.spec().name, "': the checkpoint has ", saved.keys.size(),
                                " replicated rows, but the field of occurrences has ", known.size(), " entries"));
  expect_rows_of(saved, from);
  table_.load_state(from);
  keys_ = std::move(saved.keys);
  slots_ = std::move(saved.slots);
  known.resize(static_cast<size_t>(rows_) + 1);
  from_host(runtime_.compute_stream(), arena_.get(seen_), known);
}

}  // namespace hctr
