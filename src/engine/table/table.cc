#include "engine/table/table.h"

#include <algorithm>

#include "core/device/copy_bytes.h"
#include "engine/spec/slot_vector_columns.h"
#include "ops/embedding/embedding_update.h"
#include "ops/embedding/row_sums.h"

namespace hctr {
namespace {

constexpr int64_t kKeysOfImport = 1024;  // maximum keys of an import call if batches add no rows

int64_t keys_to_insert(const TableSpec& spec) {
  if (spec.fixed_keys) return 1;
  return std::max<int64_t>(spec.key_capacity, spec.loads_only ? kKeysOfImport : 1);
}

}  // namespace

EmbeddingTable::EmbeddingTable(Runtime& runtime, const TableSpec& spec, int ring_size)
    : runtime_(runtime),
      spec_(spec),
      batch_keys_(std::max<int64_t>(spec_.key_capacity, 1)),
      eval_keys_(spec_.eval_key_capacity),
      store_(runtime, spec_, keys_to_insert(spec_), ring_size) {
  HCTR_EXPECT(spec_.dim > 0 && spec_.slots > 0 && spec_.samples > 0 && ring_size > 0, "table '", spec_.name,
              "': ", spec_.dim, " elements, ", spec_.slots, " slots, ", spec_.samples, " samples, ", ring_size,
              " ring slots");
  const bool unpooled = spec_.combiner == ops::Combiner::none;
  HCTR_EXPECT(!unpooled || static_cast<int64_t>(spec_.slot_keys.size()) == spec_.slots, "table '", spec_.name,
              "': ", spec_.slots, " slots with ", spec_.slot_keys.size(), " sizes");
  const auto words = [&](int64_t count) { return arena_.add(TensorSpec(DType::i32, {count})); };
  const size_t slot_numbers = words(spec_.batch_slots ? spec_.slots_of_batch() : 0);
  const size_t of_slot = words(unpooled ? spec_.slots : 0), slots = words(unpooled ? spec_.columns() : 0);
  arena_.build(runtime.device());

  batches_.resize(static_cast<size_t>(ring_size));
  for (Batch& batch : batches_) set_memory(batch, spec_.key_capacity);
  make_scratch(batch_keys_, eval_keys_);
  if (spec_.policy.guards_entry()) admission_ = std::make_unique<Admission>(runtime_, spec_, ring_size);
  if (spec_.batch_slots) {
    from_host(runtime_.compute_stream(), arena_.get(slot_numbers), *spec_.batch_slots);
    slot_numbers_ = arena_.get(slot_numbers).data<int32_t>();
  }
  if (unpooled) upload_columns(arena_.get(of_slot).data<int32_t>(), arena_.get(slots).data<int32_t>());
}

void EmbeddingTable::upload_columns(int32_t* of_slot, int32_t* slots) {
  const SlotVectorColumns columns = slot_vector_columns(spec_);
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, of_slot, columns.of_slot.data(), columns.of_slot.size() * sizeof(int32_t));
  copy_bytes(stream, slots, columns.slots.data(), columns.slots.size() * sizeof(int32_t));
  stream.synchronize();
  columns_of_slots_ = {of_slot, slots};
}

void EmbeddingTable::check_keys() const {
  if (not_found_) throw *not_found_;
  store_.key_reports().check();
}

void EmbeddingTable::set_memory(Batch& batch, int64_t keys) {
  auto memory = std::make_shared<BatchMemory>(runtime_.device(), keys);
  if (replaced_) replaced_->push_back(batch.memory);
  batch.memory = std::move(memory);
  batch.rows = batch.memory->rows;
  batch.groups = batch.memory->groups;
  batch.rows_after = batch.memory->rows_after;
}

void EmbeddingTable::make_scratch(int64_t batch_keys, int64_t eval_keys) {
  const auto make = [&](int64_t batch, int64_t eval) {
    return std::make_shared<BatchScratch>(runtime_.device(), batch, eval, spec_.dim);
  };
  if (replaced_) replaced_->push_back(scratch_);
  scratch_.reset();  // release the old scratch first, because old and new scratch together might not fit
  try {
    scratch_ = make(batch_keys, eval_keys);
  } catch (...) {
    scratch_ = make(batch_keys_, eval_keys_);  // restore the scratch for batches that are already queued
    throw;
  }
  batch_keys_ = batch_keys;
  eval_keys_ = eval_keys;
}

void EmbeddingTable::keep_replaced_memory() {
  if (!replaced_) replaced_.emplace();
  if (admission_) admission_->keep_replaced_memory();
}

void EmbeddingTable::reserve_lookup(int64_t keys) {
  if (keys <= eval_keys_) return;
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  make_scratch(batch_keys_, std::min(keys + keys / 4, std::max(keys, spec_.most_batch_keys())));
}

void EmbeddingTable::reserve_batch(int buffer, int64_t keys) {
  HCTR_EXPECT(keys <= spec_.most_batch_keys(), "table '", spec_.name, "': a batch of ", keys, " keys, at most ",
              spec_.most_batch_keys());
  Batch& batch = batches_.at(static_cast<size_t>(buffer));
  const auto shared_memory_fits = [&] {
    return batch.memory->keys() <= batch_keys_ && (!admission_ || admission_->reserved(batch_keys_));
  };
  if (keys <= batch.memory->keys() && shared_memory_fits()) return;
  runtime_.prepare_stream().synchronize();
  runtime_.compute_stream().synchronize();
  // Allocate a quarter more, because a slightly larger batch often follows a larger one.
  if (keys > batch.memory->keys()) {
    set_memory(batch, std::min(keys + keys / 4, spec_.most_batch_keys()));
    batch.keys = {};
  }
  if (const int64_t most = batch.memory->keys(); most > batch_keys_) {
    make_scratch(most, eval_keys_);
    store_.rows().batches().grow(most);
  }
  if (!shared_memory_fits()) admission_->reserve_batch(spec_, batch_keys_);
}

ops::KeyBatch EmbeddingTable::key_batch(const Tensor& keys, const Tensor& offsets, int64_t most_samples,
                                        int64_t most_keys) const {
  const int64_t slots = spec_.slots_of_batch();
  int64_t samples = most_samples;
  if (spec_.most_key_capacity == 0) {
    expect_shape("table keys", keys, {most_keys});
    expect_shape("table offsets", offsets, {slots * most_samples + 1});
  } else {
    samples = (offsets.elements() - 1) / slots;
    HCTR_EXPECT(keys.rank() == 1 && keys.elements() <= most_keys, "table '", spec_.name, "': keys of shape ",
                to_string(keys.shape()), ", memory for ", most_keys);
    expect_shape("table offsets", offsets, {slots * samples + 1});
  }
  return {keys.data<const int64_t>(),
          offsets.data<const int32_t>(),
          slots,
          samples,
          keys.elements(),
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
  return may_be_on_disk() && store_.tiers().disk()->list_missing(
                                 ctx, key_batch(keys, offsets, spec_.samples, spec_.key_capacity), batch.rows);
}

void EmbeddingTable::bring_rows(Context& ctx, int buffer, Tensor keys, Tensor offsets) {
  if (!may_be_on_disk()) return;
  not_brought_.reset();
  try {
    store_.tiers().bring_rows(ctx, key_batch(keys, offsets, spec_.samples, spec_.key_capacity),
                              batches_.at(static_cast<size_t>(buffer)).rows, NewKeys::get_rows);
  } catch (const Error& error) {
    not_brought_ = error;
    // The other ranks wait for this rank in prepare(), so continue with zeroed offsets, which add no row.
    zero_bytes(ctx.stream(), offsets.bytes(), static_cast<size_t>(offsets.elements()) * sizeof(int32_t));
  }
}

void EmbeddingTable::prepare(Context& ctx, int buffer, Tensor keys, Tensor offsets, const KeyGradients& gradients) {
  prepare(ctx, buffer, keys, offsets, gradients, {});
}

void EmbeddingTable::prepare(Context& ctx, int buffer, Tensor keys, Tensor offsets, const KeyGradients& gradients,
                             const PlaceRows& place_rows) {
  Batch& batch = batches_.at(static_cast<size_t>(buffer));
  batch.keys =
      key_batch(keys, offsets, spec_.samples, spec_.most_key_capacity > 0 ? batch.memory->keys() : spec_.key_capacity);
  batch.keys.gradients = gradients.of_keys;
  batch.gradients = batch.keys;
  if (gradients.of_keys) {
    HCTR_EXPECT(spec_.combiner == ops::Combiner::sum, "table '", spec_.name,
                "': gradients per key need combiner "
                "sum");
    batch.gradients.slots = batch.gradients.columns = 1;
    batch.gradients.samples = gradients.count;
  }
  if (place_rows) {
    place_rows(ctx, &hash_index().state->ready, batch.rows);
  } else if (store_.rows().direct()) {
    find_directly(ctx, batch.keys, false, batch.rows);
  } else if (spec_.fixed_keys) {
    ops::index_find(ctx, hash_index(), batch.keys, batch.rows);
  } else {
    if (admission_)
      admission_->find_or_admit(ctx, hash_index(), batch.keys, batch.rows);
    else
      ops::index_insert(ctx, hash_index(), batch.keys, batch.rows);
    ops::init_new_rows(ctx, hash_index(), arrays().init(), arrays().data());
  }
  // If batches grow, this code sometimes queues work once and sometimes records it. Work that is queued once may use
  // of_memory().
  const RowBits& bits = store_.rows().bits();
  const bool once = spec_.most_key_capacity > 0 && !ctx.stream().is_capturing();
  ops::group_by_row(ctx, batch.keys, batch.rows, once ? bits.of_memory() : bits.now(), batch.groups, scratch_->group);
  if (arrays().access_stats().any())
    ops::record_access(ctx, batch.groups, batch.keys.key_capacity, arrays().access_stats());
  ops::index_close_batch(ctx, hash_index(), batch.rows_after, store_.rows().index().host_word());
}

void EmbeddingTable::find_directly(Context& ctx, const ops::KeyBatch& batch, bool evaluation, int32_t* rows) {
  const KeyReports::Report out_of_range = store_.key_reports().of(evaluation);
  ops::direct_rows(ctx, *store_.rows().direct(), batch, out_of_range.state, rows);
  ops::report_out_of_range(ctx, batch, out_of_range.state, out_of_range.host);
}

void EmbeddingTable::forward(Context& ctx, int buffer, Tensor y) { pool(ctx, prepared(buffer), nullptr, y); }

void EmbeddingTable::pool(Context& ctx, const Batch& batch, const ops::OwnerVectors* owners, Tensor y) const {
  if (owners)
    ops::pool_others(ctx, batch.keys, batch.rows, arrays().data().vectors, spec_.combiner, *owners, y);
  else
    ops::pool(ctx, batch.keys, batch.rows, arrays().data().vectors, spec_.combiner, y);
}

void EmbeddingTable::pool(Context& ctx, const Batch& batch, const ops::SampleShards& shards) const {
  ops::pool_shards(ctx, batch.keys, batch.rows, arrays().data().vectors, spec_.combiner, spec_.dim, shards);
}

void EmbeddingTable::sum_long_runs(Context& ctx, int buffer, Tensor dy) {
  const Batch& batch = prepared(buffer);
  ops::sum_long_runs(ctx, batch.gradients, batch.groups, spec_.combiner, dy, scratch_->piece_sums);
}

void EmbeddingTable::sum_row_gradients(Context& ctx, int buffer, Tensor dy, Tensor sums) {
  const Batch& batch = prepared(buffer);
  ops::sum_row_gradients(ctx, batch.gradients, batch.groups, spec_.combiner, dy, scratch_->piece_sums, sums);
}

void EmbeddingTable::update(Context& ctx, int buffer, Tensor dy) {
  const Batch& batch = prepared(buffer);
  if (!frozen_)
    ops::update_rows(ctx, spec_.optimizer, batch.gradients, batch.groups, spec_.combiner, dy, scratch_->piece_sums,
                     arrays().data());
  end_step(ctx, buffer);
}

void EmbeddingTable::list_row_gradients(Context& ctx, int buffer, Tensor dy, int64_t* keys, Tensor sums) {
  const Batch& batch = prepared(buffer);
  const int64_t capacity = batch.keys.key_capacity;
  auto* const run_of = reinterpret_cast<int32_t*>(scratch_->group);
  ops::number_runs(ctx, batch.groups, capacity, run_of);
  ops::RowGroups by_run = batch.groups;
  by_run.rows = run_of;
  ops::sum_row_gradients(ctx, batch.gradients, by_run, spec_.combiner, dy, scratch_->piece_sums, sums);
  ops::keys_of_runs(ctx, batch.groups, arrays().data().identity, capacity, keys);
}

void EmbeddingTable::leave_unchanged(Context& ctx, int buffer) {
  ops::index_finish_step(ctx, hash_index(), prepared(buffer).rows_after);
}

void EmbeddingTable::end_step(Context& ctx, int buffer) {
  const uint32_t* rows_after = prepared(buffer).rows_after;
  if (arrays().data().touched && !frozen_) ops::sweep_rows(ctx, spec_.optimizer, rows_after, arrays().data());
  ops::index_finish_step(ctx, hash_index(), rows_after);
}

EmbeddingTable::Batch EmbeddingTable::find(Context& ctx, Tensor keys, Tensor offsets) {
  const ops::KeyBatch batch = key_batch(keys, offsets, spec_.eval_samples, eval_keys_);
  int32_t* const eval_rows = scratch_->eval_rows;
  if (store_.rows().direct()) {
    find_directly(ctx, batch, true, eval_rows);
  } else {
    try {
      if (!not_found_) store_.tiers().bring_rows(ctx, batch, eval_rows, NewKeys::get_none);
    } catch (const Error& error) {
      if (spec_.ranks == 1) throw;
      not_found_ = error;
    }
    ops::index_find(ctx, hash_index(), batch, eval_rows);
  }
  if (admission_ && spec_.policy.shares_row()) admission_->share_row(ctx, batch, eval_rows);
  return {.keys = batch, .rows = eval_rows, .groups = {}};
}

void EmbeddingTable::lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) {
  pool(ctx, find(ctx, keys, offsets), nullptr, y);
}

HostRows EmbeddingTable::host_rows() { return store_.tiers().host_rows(); }

int64_t EmbeddingTable::rows() { return store_.tiers().finished_rows() + (disk_rows() ? disk_rows()->rows() : 0); }

}  // namespace hctr
