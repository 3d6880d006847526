#include "engine/table/table.h"

#include <algorithm>

#include "core/device/copy_bytes.h"
#include "ops/embedding/embedding_update.h"

namespace hctr {

EmbeddingTable::EmbeddingTable(Runtime& runtime, const TableSpec& spec, int ring_size)
    : runtime_(runtime),
      spec_(spec),
      store_(runtime, spec_, spec_.fixed_keys ? 1 : std::max<int64_t>(spec_.key_capacity, 1), ring_size) {
  HCTR_EXPECT(spec_.dim > 0 && spec_.slots > 0 && spec_.samples > 0 && ring_size > 0, "table '", spec_.name,
              "': ", spec_.dim, " elements, ", spec_.slots, " slots, ", spec_.samples, " samples, ", ring_size,
              " ring slots");
  const bool unpooled = spec_.combiner == ops::Combiner::none;
  HCTR_EXPECT(!unpooled || static_cast<int64_t>(spec_.slot_keys.size()) == spec_.slots, "table '", spec_.name,
              "': ", spec_.slots, " slots with ", spec_.slot_keys.size(), " sizes");
  const int64_t keys = std::max<int64_t>(spec_.key_capacity, 1);
  const auto words = [&](int64_t count) { return arena_.add(TensorSpec(DType::i32, {count})); };
  const auto records = [&](int64_t count, size_t bytes) {
    return words(count * static_cast<int64_t>(bytes / sizeof(int32_t)));
  };

  struct Tickets {
    size_t rows, sorted, bags, run_begin, long_runs, pieces, counts, rows_after;
  };
  std::vector<Tickets> tickets;
  for (int s = 0; s < ring_size; ++s)
    tickets.push_back({words(keys), words(keys), words(keys), words(keys),
                       records(ops::RowGroups::most_long_runs(keys), sizeof(ops::LongRun)),
                       records(ops::RowGroups::most_pieces(keys), sizeof(ops::Piece)),
                       records(1, sizeof(ops::GroupCounts)), words(1)});
  const size_t sums = arena_.add(TensorSpec(DType::f32, {ops::RowGroups::most_pieces(keys), spec_.dim}));
  const size_t eval_rows = words(std::max<int64_t>(spec_.eval_key_capacity, 1));
  const size_t scratch =
      words(static_cast<int64_t>(ops::group_scratch_bytes(runtime.device(), keys) / sizeof(int32_t)) + 1);
  const size_t slot_numbers = words(spec_.batch_slots ? spec_.slots_of_batch() : 0);
  const size_t of_slot = words(unpooled ? spec_.slots : 0), slots = words(unpooled ? spec_.columns() : 0);
  arena_.build(runtime.device());

  const auto at = [&]<class T>(size_t ticket, T*& pointer) {
    pointer = reinterpret_cast<T*>(arena_.get(ticket).bytes());
  };
  for (const Tickets& t : tickets) {
    Batch& batch = batches_.emplace_back();
    at(t.rows, batch.rows);
    at(t.sorted, batch.groups.rows);
    at(t.bags, batch.groups.bags);
    at(t.run_begin, batch.groups.run_begin);
    at(t.long_runs, batch.groups.long_runs);
    at(t.pieces, batch.groups.pieces);
    at(t.counts, batch.groups.counts);
    at(t.rows_after, batch.rows_after);
  }
  at(sums, piece_sums_);
  at(eval_rows, eval_rows_);
  at(scratch, scratch_);
  if (spec_.policy.guards_entry()) admission_ = std::make_unique<Admission>(runtime_, spec_, ring_size);
  if (spec_.batch_slots) {
    from_host(runtime_.compute_stream(), arena_.get(slot_numbers), *spec_.batch_slots);
    slot_numbers_ = arena_.get(slot_numbers).data<int32_t>();
  }
  if (unpooled) upload_columns(arena_.get(of_slot).data<int32_t>(), arena_.get(slots).data<int32_t>());
}

void EmbeddingTable::upload_columns(int32_t* of_slot, int32_t* slots) {
  std::vector<int32_t> first, slot_of_each;
  for (int64_t s = 0; s < spec_.slots; ++s) {
    first.push_back(static_cast<int32_t>(slot_of_each.size()));
    slot_of_each.insert(slot_of_each.end(), static_cast<size_t>(spec_.slot_keys[static_cast<size_t>(s)]),
                        static_cast<int32_t>(s));
  }
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, of_slot, first.data(), first.size() * sizeof(int32_t));
  copy_bytes(stream, slots, slot_of_each.data(), slot_of_each.size() * sizeof(int32_t));
  stream.synchronize();
  columns_of_slots_ = {of_slot, slots};
}

void EmbeddingTable::check_keys() const {
  if (not_found_) throw *not_found_;
  store_.check_keys();
}

ops::KeyBatch EmbeddingTable::key_batch(const Tensor& keys, const Tensor& offsets, int64_t samples,
                                        int64_t key_capacity) const {
  expect_shape("table keys", keys, {key_capacity});
  expect_shape("table offsets", offsets, {spec_.slots_of_batch() * samples + 1});
  return {keys.data<const int64_t>(),
          offsets.data<const int32_t>(),
          spec_.slots_of_batch(),
          samples,
          key_capacity,
          spec_.columns(),
          columns_of_slots_,
          slot_numbers_};
}

const EmbeddingTable::Batch& EmbeddingTable::prepared(int buffer) const {
  const Batch& batch = batches_.at(static_cast<size_t>(buffer));
  HCTR_EXPECT(batch.keys.keys, "table '", spec_.name, "': buffer ", buffer, " was never prepared");
  return batch;
}

bool EmbeddingTable::list_missing(Context& ctx, int buffer, Tensor keys, Tensor offsets) {
  Batch& batch = batches_.at(static_cast<size_t>(buffer));
  return may_be_on_disk() &&
         store_.list_missing(ctx, key_batch(keys, offsets, spec_.samples, spec_.key_capacity), batch.rows);
}

void EmbeddingTable::bring_rows(Context& ctx, int buffer, Tensor keys, Tensor offsets) {
  if (!may_be_on_disk()) return;
  not_brought_.reset();
  try {
    store_.bring_rows(ctx, key_batch(keys, offsets, spec_.samples, spec_.key_capacity),
                      batches_.at(static_cast<size_t>(buffer)).rows, RowStore::NewKeys::get_rows);
  } catch (const Error& error) {
    not_brought_ = error;
    // The other ranks need this one in prepare(), where no key may get a row now.
    zero_bytes(ctx.stream(), offsets.bytes(), static_cast<size_t>(offsets.elements()) * sizeof(int32_t));
  }
}

void EmbeddingTable::prepare(Context& ctx, int buffer, Tensor keys, Tensor offsets, const KeyGradients& gradients) {
  Batch& batch = batches_.at(static_cast<size_t>(buffer));
  batch.keys = key_batch(keys, offsets, spec_.samples, spec_.key_capacity);
  batch.keys.gradients = gradients.of_keys;
  batch.gradients = batch.keys;
  if (gradients.of_keys) {
    HCTR_EXPECT(spec_.combiner == ops::Combiner::sum, "table '", spec_.name, "': gradients of keys, but weighted bags");
    batch.gradients.slots = batch.gradients.columns = 1;
    batch.gradients.samples = gradients.count;
  }
  if (store_.direct()) {
    find_directly(ctx, batch.keys, false, batch.rows);
  } else if (spec_.fixed_keys) {
    ops::index_find(ctx, store_.index(), batch.keys, batch.rows);
  } else {
    if (admission_)
      admission_->find_or_admit(ctx, store_.index(), batch.keys, batch.rows);
    else
      ops::index_insert(ctx, store_.index(), batch.keys, batch.rows);
    ops::init_new_rows(ctx, store_.index(), store_.init(), store_.data());
  }
  ops::group_by_row(ctx, batch.keys, batch.rows, store_.row_bits(), batch.groups, scratch_);
  if (store_.access_stats().any())
    ops::record_access(ctx, batch.groups, batch.keys.key_capacity, store_.access_stats());
  ops::index_close_batch(ctx, store_.index(), batch.rows_after, store_.host_word());
}

void EmbeddingTable::find_directly(Context& ctx, const ops::KeyBatch& batch, bool evaluation, int32_t* rows) {
  const RowStore::OutOfRangeReport out_of_range = store_.out_of_range(evaluation);
  ops::direct_rows(ctx, *store_.direct(), batch, out_of_range.state, rows);
  ops::report_out_of_range(ctx, batch, out_of_range.state, out_of_range.host);
}

void EmbeddingTable::forward(Context& ctx, int buffer, Tensor y) { pool(ctx, prepared(buffer), nullptr, y); }

void EmbeddingTable::pool(Context& ctx, const Batch& batch, const ops::OwnerVectors* owners, Tensor y) const {
  if (owners)
    ops::pool_others(ctx, batch.keys, batch.rows, store_.data().vectors, spec_.combiner, *owners, y);
  else
    ops::pool(ctx, batch.keys, batch.rows, store_.data().vectors, spec_.combiner, y);
}

void EmbeddingTable::pool(Context& ctx, const Batch& batch, const ops::SampleShards& shards) const {
  ops::pool_shards(ctx, batch.keys, batch.rows, store_.data().vectors, spec_.combiner, spec_.dim, shards);
}

void EmbeddingTable::sum_long_runs(Context& ctx, int buffer, Tensor dy) {
  const Batch& batch = prepared(buffer);
  ops::sum_long_runs(ctx, batch.gradients, batch.groups, spec_.combiner, dy, piece_sums_);
}

void EmbeddingTable::sum_row_gradients(Context& ctx, int buffer, Tensor dy, Tensor sums) {
  const Batch& batch = prepared(buffer);
  ops::sum_row_gradients(ctx, batch.gradients, batch.groups, spec_.combiner, dy, piece_sums_, sums);
}

void EmbeddingTable::update(Context& ctx, int buffer, Tensor dy) {
  const Batch& batch = prepared(buffer);
  if (!frozen_)
    ops::update_rows(ctx, spec_.optimizer, batch.gradients, batch.groups, spec_.combiner, dy, piece_sums_,
                     store_.data());
  end_step(ctx, buffer);
}

void EmbeddingTable::end_step(Context& ctx, int buffer) {
  const uint32_t* rows_after = prepared(buffer).rows_after;
  if (store_.data().touched && !frozen_) ops::sweep_rows(ctx, spec_.optimizer, rows_after, store_.data());
  ops::index_finish_step(ctx, store_.index(), rows_after);
}

EmbeddingTable::Batch EmbeddingTable::find(Context& ctx, Tensor keys, Tensor offsets) {
  const ops::KeyBatch batch = key_batch(keys, offsets, spec_.eval_samples, spec_.eval_key_capacity);
  if (store_.direct()) {
    find_directly(ctx, batch, true, eval_rows_);
  } else {
    try {
      if (!not_found_) store_.bring_rows(ctx, batch, eval_rows_, RowStore::NewKeys::get_none);
    } catch (const Error& error) {
      if (spec_.ranks == 1) throw;
      not_found_ = error;
    }
    ops::index_find(ctx, store_.index(), batch, eval_rows_);
  }
  if (admission_ && spec_.policy.shares_row()) admission_->share_row(ctx, batch, eval_rows_);
  return {.keys = batch, .rows = eval_rows_, .groups = {}};
}

void EmbeddingTable::lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) {
  pool(ctx, find(ctx, keys, offsets), nullptr, y);
}

RowStore::HostRows EmbeddingTable::host_rows() { return store_.host_rows(); }

int64_t EmbeddingTable::rows() { return store_.finished_rows() + (store_.disk() ? store_.disk()->rows() : 0); }

}  // namespace hctr
