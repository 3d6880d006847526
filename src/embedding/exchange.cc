#include "embedding/exchange.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "device/copy.h"

namespace hctr {

Exchange::Exchange(Runtime& runtime, Communicator& comm, const Placement& placement, const Shape& shape, int ring)
    : comm_(comm), shape_(shape), pieces_(placement.pieces), piece_dim_(shape.dim / placement.pieces) {
  const int64_t ranks = comm.size();
  place_columns(placement);
  const ops::OwnerBlock& own = owners_[static_cast<size_t>(comm.rank())];
  const auto owned = static_cast<int64_t>(own.count);
  const int64_t own_words = ops::OwnerBlock::offset_words(owned, shape.samples) + most_keys(own);
  const auto words = [&](DType dtype, int64_t count) { return arena_.add(TensorSpec(dtype, {count})); };
  const auto records = [&](size_t count, size_t bytes) { return words(DType::i32, static_cast<int64_t>((count * bytes + sizeof(int32_t) - 1) / sizeof(int32_t))); };
  for (int s = 0; s < ring; ++s)
    of_slot_.push_back({words(DType::i32, owned * owned_samples() + 1), words(DType::i64, owned_key_capacity()),
                        records(columns_.size() * static_cast<size_t>(shape.samples), 1), records(static_cast<size_t>(owned * owned_samples()), 1)});
  sent_ = words(DType::i64, words_);
  received_ = words(DType::i64, ranks * own_words);
  const size_t scratch = std::max(ops::key_blocks_scratch_bytes(runtime.device(), static_cast<int64_t>(columns_.size()) * shape.samples),
                                  ops::key_blocks_scratch_bytes(runtime.device(), owned * owned_samples()));
  scratch_ = words(DType::i32, static_cast<int64_t>(scratch / sizeof(int32_t)) + 1);
  blocks_memory_ = records(columns_.size(), sizeof(ops::BlockColumn));
  owners_memory_ = records(owners_.size(), sizeof(ops::OwnerBlock));
  slots_memory_ = records(column_slots_.size(), sizeof(int32_t));
  places_memory_ = records(first_of_slot_.size(), sizeof(int32_t));
  first_places_memory_ = records(first_places_.size(), sizeof(int32_t));
  column_places_memory_ = records(places_of_columns_.size(), sizeof(ops::PartPlace));
  alike_memory_ = records(first_places_.size(), sizeof(int32_t));
  alike_places_memory_ = records(first_places_.size(), sizeof(ops::PartPlace));
  arena_.build(runtime.device());
  upload(runtime);
  make_routes(runtime);
}

void Exchange::make_routes(Runtime& runtime) {
  const auto owned = static_cast<int64_t>(owned_slots_.size());
  const auto rank = static_cast<size_t>(comm_.rank());
  Parts of_owners, of_ranks = Parts::equal(comm_.size(), owned * shape_.samples * piece_dim_);
  std::vector<int64_t> vectors_of_owners, vectors_of_ranks;
  for (const ops::OwnerBlock& block : owners_) {
    of_owners.add(block.first * shape_.samples * piece_dim_, block.count * shape_.samples * piece_dim_);
    vectors_of_owners.push_back(block.first * shape_.samples);
  }
  for (int64_t r = 0; r < comm_.size(); ++r) vectors_of_ranks.push_back(r * owned * shape_.samples);
  const auto without_own = [rank](Parts parts) {
    parts.count[rank] = 0;
    return parts;
  };
  to_samples_ = comm_.make_route(runtime.device(), {shape_.dtype, without_own(of_ranks), without_own(of_owners), static_cast<int64_t>(columns_.size()) * shape_.samples * piece_dim_,
                                                    piece_dim_, vectors_of_ranks});
  if (owners_are_alike_) {  // the part for all lies apart, and goes to this rank too
    of_owners.begin.assign(of_owners.begin.size(), 0);
  } else {
    of_owners = without_own(of_owners);
    of_ranks = without_own(of_ranks);
  }
  to_owners_ = comm_.make_route(runtime.device(), {shape_.dtype, of_owners, of_ranks, owned_samples() * owned * piece_dim_, piece_dim_, vectors_of_owners});
  vector_blocks_.own_begin = owners_[rank].first * shape_.samples;
  vector_blocks_.own_end = vector_blocks_.own_begin + owned * shape_.samples;
  vector_blocks_.own = owned_vectors().bytes() + static_cast<size_t>(own_samples().begin * owned * piece_dim_) * size_of(shape_.dtype);
  if (owners_are_alike_) return;
  gradient_blocks_.own_begin = vector_blocks_.own_begin;
  gradient_blocks_.own_end = vector_blocks_.own_end;
  gradient_blocks_.own = vector_blocks_.own;
}

Tensor Exchange::owned_vectors() const {
  const Tensor memory = to_owners_->arrived();
  return Tensor(memory.bytes(), TensorSpec(shape_.dtype, {owned_samples(), static_cast<int64_t>(owned_slots_.size()), piece_dim_}), memory.device());
}

/// Columns are the vectors that a sample has: a slot's, or each place's where keys are not pooled. Each piece of one is a column at its owner.
void Exchange::place_columns(const Placement& placement) {
  const bool pooled = shape_.slot_places.empty();
  for (size_t s = 0; s < shape_.slot_keys.size(); ++s) {
    first_of_slot_.push_back(static_cast<int32_t>(column_slots_.size()));
    column_slots_.insert(column_slots_.end(), pooled ? 1 : static_cast<size_t>(shape_.slot_places[s]), static_cast<int32_t>(s));
  }
  const auto all = static_cast<int64_t>(column_slots_.size()) * pieces_;
  std::vector<std::vector<ops::PartPlace>> at_owners(static_cast<size_t>(all));
  const auto slot_of = [&](int64_t c) { return column_slots_[static_cast<size_t>(c / pieces_)] * pieces_ + c % pieces_; };
  for (int r = 0; r < comm_.size(); ++r) {
    std::vector<int64_t> held;
    for (int64_t c = 0; c < all; ++c)
      if (placement.holds(r, slot_of(c))) held.push_back(c);
    ops::OwnerBlock block{static_cast<int32_t>(columns_.size()), static_cast<int32_t>(held.size()), words_, 0};
    for (size_t i = 0; i < held.size(); ++i) {
      const int64_t slot = slot_of(held[i]);
      at_owners[static_cast<size_t>(held[i])].push_back({block.first * shape_.samples + static_cast<int64_t>(i), block.count});
      columns_.push_back({static_cast<int32_t>(held[i] / pieces_), r, placement.spread(slot) ? comm_.size() : 1});
      if (r == comm_.rank()) owned_slots_.push_back(static_cast<int32_t>(slot));
    }
    block.keys = block.begin + ops::OwnerBlock::offset_words(block.count, shape_.samples);
    words_ = block.keys + most_keys(block);
    owners_.push_back(block);
  }
  for (const auto& places : at_owners) {
    first_places_.push_back(static_cast<int32_t>(places_of_columns_.size()));
    places_of_columns_.insert(places_of_columns_.end(), places.begin(), places.end());
  }
  first_places_.push_back(static_cast<int32_t>(places_of_columns_.size()));
  const int64_t bags = static_cast<int64_t>(owned_slots_.size()) * owned_samples(), most = std::numeric_limits<int32_t>::max() - 1;
  if (owned_key_capacity() > most || bags > most)
    throw Error(Kind::config, cat("a batch of all ranks may bring ", owned_key_capacity(), " keys of ", bags, " bags to rank ", comm_.rank(), ", and a rank can take ", most,
                                  ": give a smaller \"batchsize\", or \"placement\": \"localized\""));
  owners_are_alike_ = static_cast<int64_t>(columns_.size()) == all * comm_.size();
}

int64_t Exchange::most_keys(const ops::OwnerBlock& block) const {
  int64_t of_sample = 0;
  for (int32_t c = block.first; c < block.first + block.count; ++c)
    of_sample += shape_.slot_places.empty() ? shape_.slot_keys[static_cast<size_t>(columns_[static_cast<size_t>(c)].column)] : 1;
  return std::min(of_sample * shape_.samples, shape_.key_capacity * pieces_);
}

int64_t Exchange::owned_key_capacity() const { return most_keys(owners_[static_cast<size_t>(comm_.rank())]) * comm_.size(); }

void Exchange::upload(Runtime& runtime) {
  const auto put = [&]<class T>(size_t ticket, const std::vector<T>& values) {
    const Tensor memory = arena_.get(ticket);
    copy_bytes(runtime.compute_stream(), memory.bytes(), values.data(), values.size() * sizeof(T));
    runtime.compute_stream().synchronize();
    return reinterpret_cast<const T*>(memory.bytes());
  };
  key_blocks_.ranks = comm_.size();
  key_blocks_.count = static_cast<int32_t>(columns_.size());
  vector_blocks_.columns = static_cast<int64_t>(column_slots_.size()) * pieces_;
  vector_blocks_.pieces = pieces_;
  vector_blocks_.places = static_cast<int64_t>(places_of_columns_.size());
  key_blocks_.columns = put(blocks_memory_, columns_);
  key_blocks_.owners = put(owners_memory_, owners_);
  vector_blocks_.first = put(first_places_memory_, first_places_);
  vector_blocks_.place = put(column_places_memory_, places_of_columns_);
  gradient_blocks_ = vector_blocks_;
  if (owners_are_alike_) {  // the part of owner 0 goes to all
    std::vector<int32_t> counted(first_places_.size());
    std::iota(counted.begin(), counted.end(), 0);
    std::vector<ops::PartPlace> in_first;
    for (int64_t c = 0; c < vector_blocks_.columns; ++c) in_first.push_back({c, vector_blocks_.columns});
    gradient_blocks_.places = vector_blocks_.columns;
    gradient_blocks_.first = put(alike_memory_, counted);
    gradient_blocks_.place = put(alike_places_memory_, in_first);
  }
  if (!shape_.slot_places.empty()) places_ = {put(places_memory_, first_of_slot_), put(slots_memory_, column_slots_)};
}

void Exchange::send_keys(Context& ctx, int slot, Tensor keys, Tensor offsets, const int32_t* local_rows) {
  const auto slots = static_cast<int64_t>(shape_.slot_keys.size());
  expect_shape("exchange keys", keys, {shape_.key_capacity});
  expect_shape("exchange offsets", offsets, {slots * shape_.samples + 1});
  Slot& at = of_slot_.at(static_cast<size_t>(slot));
  at.mine = {keys.data<const int64_t>(), offsets.data<const int32_t>(), slots, shape_.samples, shape_.key_capacity,
             static_cast<int64_t>(column_slots_.size()), places_};
  std::byte* scratch = arena_.get(scratch_).bytes();
  const Tensor sent = arena_.get(sent_), received = arena_.get(received_);
  ops::KeyBlocks blocks = key_blocks_;
  blocks.local_rows = local_rows;
  ops::split_keys(ctx, at.mine, blocks, sent, bytes_of(at.sent_present), scratch);
  Parts to;
  for (const ops::OwnerBlock& block : owners_) to.add(block.begin, block.keys - block.begin + most_keys(block));
  const int64_t own_words = received.elements() / comm_.size();
  comm_.all_to_all(ctx, sent, to, received, Parts::equal(comm_.size(), own_words));
  ops::merge_keys(ctx, {comm_.size(), static_cast<int64_t>(owned_slots_.size()), shape_.samples, own_words}, received, owned_offsets(slot), owned_keys(slot),
                  bytes_of(at.owned_present), scratch);
}

void Exchange::send_vectors(Context& ctx, int slot) { to_samples_->start(ctx, to_owners_->arrived(), bytes_of(of_slot_.at(static_cast<size_t>(slot)).owned_present)); }

ops::VectorBlocks Exchange::finish_vectors(Context& ctx, int slot) {
  to_samples_->finish(ctx);
  ops::VectorBlocks blocks = vector_blocks_;
  blocks.present = bytes_of(of_slot_.at(static_cast<size_t>(slot)).sent_present);
  return blocks;
}

void Exchange::receive_vectors(Context& ctx, int slot, Tensor y) {
  ops::join_vectors(ctx, of_slot_.at(static_cast<size_t>(slot)).mine, finish_vectors(ctx, slot), shape_.combiner, to_samples_->arrived(), y);
}

void Exchange::add_received_vectors(Context& ctx, int slot, Tensor y) {
  ops::add_joined_vectors(ctx, of_slot_.at(static_cast<size_t>(slot)).mine, finish_vectors(ctx, slot), shape_.combiner, to_samples_->arrived(), y);
}

void Exchange::send_gradients(Context& ctx, int slot, Tensor dy, ops::OverflowSearch search) {
  const Slot& at = of_slot_.at(static_cast<size_t>(slot));
  const Tensor all = to_samples_->arrived();
  const Tensor parts(all.bytes(), TensorSpec(shape_.dtype, {gradient_blocks_.places * shape_.samples * piece_dim_}), all.device());
  ops::VectorBlocks blocks = gradient_blocks_;
  if (!owners_are_alike_) blocks.present = bytes_of(at.sent_present);  // a part for all has what any of them needs
  ops::split_gradients(ctx, at.mine, blocks, shape_.combiner, dy, parts, search);
  to_owners_->start(ctx, parts, bytes_of(at.sent_present));
}

}  // namespace hctr
