// Sends vectors to the ranks of the samples, and gradients to the owner ranks of the rows.
#include <algorithm>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/set/shared_table.h"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/listed_vectors.h"

namespace hctr {

/// Returns the vectors that this rank has received. For a replicated table, returns the rows of the table itself,
/// because this rank's keys are part of the batch of all ranks.
SharedTable::OwnRows SharedTable::own_rows(const Batch& of, size_t feature, const int32_t* rows) const {
  if (!place_.replicated()) return {{of.own.vectors, DType::f32}, of.own.found};
  int64_t before = 0;
  for (size_t f = 0; f <= feature; ++f)
    for (size_t r = 0; r < of.from.size(); ++r)
      if (f < feature || static_cast<int>(r) < comm_.rank()) before += of.from[r].of_feature(f);
  const int64_t own = of.from[static_cast<size_t>(comm_.rank())].begins[feature];
  return {table_->data().vectors, rows + (before - own)};
}

int64_t SharedTable::keys_sent(const Batch& of) const {
  int64_t keys = 0;
  for (const KeysFromRank& to : of.sent) keys += to.all();
  return keys;
}

void SharedTable::read_vectors(Context& ctx, int buffer) {
  Batch& of = batch(buffer);
  if (looks_up(buffer))
    of.rows = table_ ? table_->find(ctx, keys_of(of), offsets_of(of)).rows : nullptr;
  else
    of.rows = table_ ? table_->prepared(buffer).rows : nullptr;
  if (place_.replicated() || of.received_keys == 0) return;
  const Received& from = of.received;
  const int32_t* rows = of.rows;
  if (features_.count() > 1) {
    for (const Piece& piece : pieces_of(of))
      copy_elements(ctx, rows + piece.in_batch, from.rows_by_rank + piece.by_rank, piece.keys);
    rows = from.rows_by_rank;
  }
  ops::pool_bags(ctx, {.offsets = from.offsets, .bags = received_bags(of), .most = of.received_keys, .rows = rows},
                 table_->data().vectors, ops::BagPooling::none,
                 {from.vectors, TensorSpec(DType::f32, {of.received_keys, spec_.dim}), runtime_.device()}, nullptr);
}

void SharedTable::add_vector_exchanges(int buffer, std::vector<AllToAll>& all) {
  if (place_.replicated()) return;
  const Batch& of = batch(buffer);
  const Received& from = of.received;
  const int64_t dim = spec_.dim;
  all.push_back({list(DType::f32, from.vectors, from.keys * dim), received_ranges(of, dim),
                 list(DType::f32, of.own.vectors, (of.own.keys + 1) * dim), sent_ranges(of, dim, 1)});
  if (features_.with_max() == 0) return;
  // Max pooling considers only keys with a row, so owners also send the row numbers.
  const int32_t* const rows = of.received_keys == 0   ? from.in_order
                              : features_.count() > 1 ? from.rows_by_rank
                                                      : of.rows;
  all.push_back({list(DType::i32, const_cast<int32_t*>(rows), from.keys), received_ranges(of, 1),
                 list(DType::i32, of.own.rows, of.own.keys), sent_ranges(of, 1, 0)});
}

void SharedTable::pool(Context& ctx, Batch& of, std::span<const PlacedVectors> outputs) {
  if (of.input.batch_samples == 0) return;
  const bool alike = pooled_alike(features_.all);
  for (size_t f = 0; f < features_.all.size(); ++f) {
    const OwnRows own = own_rows(of, f, of.rows);
    const ops::BagList bags = of.input.bags_of(features_, f, own.rows);
    const Tensor y = of.input.vectors_of(runtime_.device(), features_, f, outputs[f]);
    if (!alike) {
      ops::pool_bags(ctx, bags, own.memory, features_.all[f].pooling, y, of.input.chosen_of(features_, f));
      continue;
    }
    // Pool in the same way as a table on a single rank.
    const ops::KeyBatch keys{.keys = of.input.of_keys,
                             .offsets = bags.offsets,
                             .slots = 1,
                             .samples = bags.bags,
                             .key_capacity = of.input.batch_keys,
                             .columns = 1};
    ops::pool(
        ctx, keys, own.rows, own.memory, combiner_,
        {outputs[f].data, TensorSpec(DType::f32, {bags.bags, 1, spec_.dim}, outputs[f].stride), runtime_.device()});
  }
}

void SharedTable::write_vectors(Context& ctx, int buffer, std::span<const PlacedVectors> outputs) {
  Batch& of = batch(buffer);
  if (!place_.replicated() && features_.with_max() > 0)
    ops::find_sent(ctx, of.own.split.places, of.own.rows, keys_sent(of), of.own.found);
  pool(ctx, of, outputs);
}

void SharedTable::weight_gradients(Context& ctx, int buffer, std::span<const PlacedVectors> gradients,
                                   std::span<float* const> dw) {
  const Batch& of = batch(buffer);
  for (size_t f = 0; f < features_.all.size(); ++f) {
    if (!features_.all[f].weighted || !dw[f]) continue;
    const OwnRows own = own_rows(of, f, rows_of(buffer));
    ops::weight_gradients(ctx, of.input.bags_of(features_, f, own.rows), own.memory, features_.all[f].pooling,
                          of.input.vectors_of(runtime_.device(), features_, f, gradients[f]), dw[f]);
  }
}

void SharedTable::write_gradients(Context& ctx, int buffer, std::span<const PlacedVectors> gradients) {
  Batch& of = batch(buffer);
  const int64_t dim = spec_.dim;
  for (size_t f = 0; f < features_.all.size(); ++f)
    if (of.input.batch_samples > 0 && of.input.most[f] > 0)
      ops::key_gradients(ctx, of.input.bags_of(features_, f, nullptr), features_.all[f].pooling,
                         of.input.vectors_of(runtime_.device(), features_, f, gradients[f]),
                         of.input.chosen_of(features_, f), of.input.gradients);
  if (!place_.spread()) return;
  // Indices in split.places start at 1, so the base address is one vector before the gradients.
  ops::copy_listed(ctx, {reinterpret_cast<std::byte*>(of.input.gradients)},
                   {reinterpret_cast<std::byte*>(of.own.gradients - dim), of.own.split.places}, keys_sent(of),
                   dim * static_cast<int64_t>(sizeof *of.own.gradients));
}

void SharedTable::add_gradient_exchange(int buffer, std::vector<AllToAll>& all) {
  const Batch& of = batch(buffer);
  const int64_t dim = spec_.dim;
  float* const sent = place_.spread() ? of.own.gradients : of.input.gradients;
  const int64_t have = place_.spread() ? of.own.keys : of.input.keys;
  all.push_back({list(DType::f32, sent, have * dim), sent_ranges(of, dim, 0),
                 list(DType::f32, of.received.vectors, of.received.keys * dim), received_ranges(of, dim)});
}

Tensor SharedTable::received_gradients(const Batch& of) const {
  return {of.received.vectors, TensorSpec(DType::f32, {std::max<int64_t>(1, of.received_keys), 1, spec_.dim}),
          runtime_.device()};
}

void SharedTable::update(Context& ctx, int buffer) {
  if (!table_) return;
  const Tensor dy = received_gradients(batch(buffer));
  table_->sum_long_runs(ctx, buffer, dy);
  table_->update(ctx, buffer, dy);
}

void SharedTable::list_row_gradients(Context& ctx, int buffer, const RowGradients& to) {
  if (!table_ || batch(buffer).received_keys == 0) return;
  const Tensor dy = received_gradients(batch(buffer));
  table_->sum_long_runs(ctx, buffer, dy);
  table_->list_row_gradients(
      ctx, buffer, dy, to.keys,
      Tensor(to.values, TensorSpec(DType::f32, {batch(buffer).received_keys, spec_.dim}), runtime_.device()));
}

int64_t SharedTable::rows_of_batch(int buffer) {
  if (!table_) return 0;
  int32_t runs = 0;
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, &runs, &table_->prepared(buffer).groups.counts->runs, sizeof runs);
  stream.synchronize();
  return runs;
}

void SharedTable::release(Context& ctx, int buffer) {
  if (table_) table_->leave_unchanged(ctx, buffer);
}

}  // namespace hctr
