#include "engine/set/shared_table.h"

#include <algorithm>
#include <numeric>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/set/set_arrays.h"
#include "ops/embedding/vector_blocks.h"

namespace hctr {

SharedTable::SharedTable(Runtime& runtime, Communicator& comm, const TableSpec& spec,
                         std::vector<TableFeature> features, TablePlace place, int batches)
    : runtime_(runtime),
      comm_(comm),
      spec_(spec),
      features_{std::move(features), spec.dim},
      place_(place),
      combiner_(combiner_of(features_.all)),
      batches_(static_cast<size_t>(batches) + 1) {
  if (place_.on(comm_.rank())) table_ = std::make_unique<EmbeddingTable>(runtime, spec, batches);
}

Tensor SharedTable::list(DType type, void* data, int64_t count) const {
  return {data, TensorSpec(type, {count}), runtime_.device()};
}

Tensor SharedTable::keys_of(const Batch& of) const {
  return list(DType::i64, of.received.of_keys, std::max<int64_t>(1, of.received_keys));
}
Tensor SharedTable::offsets_of(const Batch& of) const {
  return list(DType::i32, of.received.offsets, received_bags(of) + 1);
}

void SharedTable::reserve_own(int buffer, int64_t samples, int64_t keys) {
  Batch& of = batch(buffer);
  keys = std::max<int64_t>(keys, 1);
  of.input.reserve(runtime_, features_, samples, keys, spec_.most_batch_keys());
  if (samples <= of.own.samples && keys <= of.own.keys) return;
  runtime_.compute_stream().synchronize();  // queued work uses the old memory
  Own own{.samples = ample(samples, of.own.samples), .keys = ample(keys, of.own.keys)};
  own.split.ranks = place_.spread() ? comm_.size() : 1;
  own.split.most = own.keys;
  const int64_t lengths = own.split.ranks * features_.count() * own.samples + 1;
  const size_t scratch_bytes = ops::split_scratch_bytes(runtime_.device(), lengths);
  const auto add = [&](DType type, int64_t elements) { return own.arena.add(TensorSpec(type, {elements})); };
  const size_t of_bags = add(DType::i32, lengths), begin = add(DType::i32, lengths), sent = add(DType::i64, own.keys),
               places = add(DType::i32, own.keys), vectors = add(DType::f32, (own.keys + 1) * spec_.dim),
               gradients = add(DType::f32, own.split.ranks > 1 ? own.keys * spec_.dim : 0),
               scratch = add(DType::i32, static_cast<int64_t>(scratch_bytes + 3) / 4),
               rows = add(DType::i32, features_.with_max() > 0 ? own.keys : 0),
               found = add(DType::i32, features_.with_max() > 0 ? own.keys : 0);
  own.arena.build(runtime_.device());
  own.split.lengths = own.arena.get(of_bags).data<int32_t>();
  own.split.begin = own.arena.get(begin).data<int32_t>();
  own.split.sent = own.arena.get(sent).data<int64_t>();
  own.split.places = own.arena.get(places).data<int32_t>();
  own.split.scratch = own.arena.get(scratch).bytes();
  own.vectors = own.arena.get(vectors).data<float>();
  own.gradients = own.arena.get(gradients).data<float>();
  own.rows = own.arena.get(rows).data<int32_t>();
  own.found = features_.with_max() > 0 ? own.arena.get(found).data<int32_t>() : own.split.places;
  of.own = std::move(own);
}

void SharedTable::split(Context& ctx, int buffer, int64_t samples, std::span<const ops::FeatureBags> features) {
  Batch& of = batch(buffer);
  of.input.place(ctx, features_, samples, features);
  of.own.split.bags = bags(of);
  ops::split_by_owner(ctx, of.input.of_keys, of.input.offsets, of.own.split);
}

void SharedTable::list_counts(Context& ctx, int buffer, int32_t* counts, int64_t width, int64_t first) {
  const Batch& of = batch(buffer);
  if (of.input.batch_samples == 0) return;  // without samples, the counts stay 0
  std::vector<ops::VectorBlock> blocks;
  for (int r = 0; r < comm_.size(); ++r) {
    if (!sends_to(r)) continue;
    const int32_t* const begin = of.own.split.begin + (place_.spread() ? r * bags(of) : 0);
    blocks.push_back({.from = reinterpret_cast<const std::byte*>(begin),
                      .from_stride = of.input.batch_samples * static_cast<int64_t>(sizeof *begin),
                      .to = reinterpret_cast<std::byte*>(counts + r * width + first),
                      .to_stride = sizeof *begin,
                      .bytes = sizeof *begin,
                      .count = count_numbers()});
  }
  ops::copy_blocks(ctx, blocks);
}

void SharedTable::take_counts(int buffer, std::vector<KeysFromRank> sent, std::vector<KeysFromRank> received) {
  Batch& of = batch(buffer);
  of.sent = std::move(sent);
  of.from = std::move(received);
  of.received_keys = of.received_samples = 0;
  for (const KeysFromRank& from : of.from) {
    of.received_keys += from.all();
    of.received_samples += from.samples;
  }
}

void SharedTable::reserve_arrays(Received& arrays, int64_t bags, int64_t keys) {
  if (bags <= arrays.bags && keys <= arrays.keys) return;
  runtime_.compute_stream().synchronize();
  Received to{.bags = ample(bags, arrays.bags), .keys = ample(keys, arrays.keys)};
  // with one feature, the received keys are already in the order of the batch, so arrays by rank are not needed
  const int64_t several = features_.count() > 1 ? 1 : 0, lengths = to.bags + 1;
  const auto scratch_words = static_cast<int64_t>(ops::split_scratch_bytes(runtime_.device(), lengths) + 3) / 4;
  const auto add = [&](DType type, int64_t elements) { return to.arena.add(TensorSpec(type, {elements})); };
  const size_t by_rank = add(DType::i32, several * lengths), of_bags = add(DType::i32, lengths),
               offsets = add(DType::i32, lengths), keys_by_rank = add(DType::i64, several * to.keys),
               of_keys = add(DType::i64, to.keys), in_order = add(DType::i32, to.keys),
               numbers = add(DType::i32, several * to.keys), rows = add(DType::i32, several * to.keys),
               vectors = add(DType::f32, to.keys * spec_.dim), scratch = add(DType::i32, scratch_words);
  to.arena.build(runtime_.device());
  to.lengths = to.arena.get(of_bags).data<int32_t>();
  to.lengths_by_rank = several ? to.arena.get(by_rank).data<int32_t>() : to.lengths;
  to.offsets = to.arena.get(offsets).data<int32_t>();
  to.of_keys = to.arena.get(of_keys).data<int64_t>();
  to.keys_by_rank = several ? to.arena.get(keys_by_rank).data<int64_t>() : to.of_keys;
  to.in_order = to.arena.get(in_order).data<int32_t>();
  to.numbers = several ? to.arena.get(numbers).data<int32_t>() : to.in_order;
  if (several) to.rows_by_rank = to.arena.get(rows).data<int32_t>();
  to.vectors = to.arena.get(vectors).data<float>();
  to.scratch = to.arena.get(scratch).bytes();
  std::vector<int32_t> numbers_in_order(static_cast<size_t>(to.keys));
  std::iota(numbers_in_order.begin(), numbers_in_order.end(), 0);
  from_host(runtime_.compute_stream(), to.arena.get(in_order), numbers_in_order);
  arrays = std::move(to);
}

void SharedTable::reserve_received(int buffer, int64_t most_keys) {
  Batch& of = batch(buffer);
  if (of.received_keys > most_keys)
    refuse_call(cat("a batch of all ranks has ", of.received_keys, " keys of table '", spec_.name,
                    "' on one rank, but most_keys is ", most_keys));
  const int64_t keys = std::max<int64_t>(1, of.received_keys);
  reserve_arrays(of.received, std::max<int64_t>(1, received_bags(of)), keys);
  if (table_) looks_up(buffer) ? table_->reserve_lookup(keys) : table_->reserve_batch(buffer, keys);
}

RankRanges SharedTable::sent_ranges(const Batch& of, int64_t width, int64_t first) const {
  RankRanges ranges;
  for (const KeysFromRank& to : of.sent) ranges.add((first + to.begins.front()) * width, to.all() * width);
  return ranges;
}

RankRanges SharedTable::received_ranges(const Batch& of, int64_t width) const {
  RankRanges ranges;
  int64_t at = 0;
  for (const KeysFromRank& from : of.from) {
    ranges.add(at * width, from.all() * width);
    at += from.all();
  }
  return ranges;
}

void SharedTable::add_key_exchanges(int buffer, std::vector<AllToAll>& all) {
  Batch& of = batch(buffer);
  const Own& own = of.own;
  const Received& to = of.received;
  RankRanges sent, received;
  int64_t at = 0;
  for (int r = 0; r < comm_.size(); ++r) {
    sent.add(place_.spread() ? r * bags(of) : 0, sends_to(r) ? bags(of) : 0);
    const int64_t here = table_ ? features_.count() * of.from[static_cast<size_t>(r)].samples : 0;
    received.add(at, here);
    at += here;
  }
  all.push_back({list(DType::i32, own.split.lengths, own.split.ranks * bags(of) + 1), sent,
                 list(DType::i32, to.lengths_by_rank, to.bags + 1), received});
  all.push_back({list(DType::i64, own.split.sent, own.keys), sent_ranges(of, 1, 0),
                 list(DType::i64, to.keys_by_rank, to.keys), received_ranges(of, 1)});
}

std::vector<SharedTable::Piece> SharedTable::pieces_of(const Batch& of) const {
  std::vector<Piece> pieces;
  int64_t in_batch = 0, bag_in_batch = 0;
  for (size_t f = 0; f < features_.all.size(); ++f) {
    int64_t keys_before = 0, bags_before = 0;
    for (const KeysFromRank& from : of.from) {
      pieces.push_back({.by_rank = keys_before + from.begins[f] - from.begins[0],
                        .in_batch = in_batch,
                        .keys = from.of_feature(f),
                        .bag_by_rank = bags_before + static_cast<int64_t>(f) * from.samples,
                        .bag_in_batch = bag_in_batch,
                        .bags = from.samples});
      in_batch += from.of_feature(f);
      bag_in_batch += from.samples;
      keys_before += from.all();
      bags_before += features_.count() * from.samples;
    }
  }
  return pieces;
}

void SharedTable::join_batch(Context& ctx, int buffer) {
  if (!table_) return;
  const Batch& of = batch(buffer);
  const Received& to = of.received;
  if (features_.count() > 1)
    for (const Piece& piece : pieces_of(of)) {
      copy_elements(ctx, to.lengths_by_rank + piece.bag_by_rank, to.lengths + piece.bag_in_batch, piece.bags);
      copy_elements(ctx, to.keys_by_rank + piece.by_rank, to.of_keys + piece.in_batch, piece.keys);
      copy_elements(ctx, to.in_order + piece.by_rank, to.numbers + piece.in_batch, piece.keys);
    }
  zero_bytes(ctx.stream(), to.lengths + received_bags(of), sizeof *to.lengths);
  ops::add_lengths(ctx, to.lengths, received_bags(of) + 1, to.offsets, to.scratch);
}

void SharedTable::prepare(Context& ctx, int buffer) {
  if (!table_) return;
  const Batch& of = batch(buffer);
  table_->bring_rows(ctx, buffer, keys_of(of), offsets_of(of));
  table_->prepare(ctx, buffer, keys_of(of), offsets_of(of), {of.received.numbers, keys_of(of).elements()});
}

void SharedTable::confirm(int buffer) {
  if (!table_) return;
  table_->confirm_capacity(buffer);
  table_->enforce_limit(buffer);
}

}  // namespace hctr
