#include "embedding/exchange.h"

#include <algorithm>

#include "device/copy.h"

namespace hctr {

Exchange::Exchange(Runtime& runtime, Communicator& comm, Placement::Kind kind, const Shape& shape, int ring) : comm_(comm), shape_(shape) {
  const int64_t ranks = comm.size();
  place_columns(kind);
  const ops::OwnerBlock& own = owners_[static_cast<size_t>(comm.rank())];
  const auto columns = static_cast<int64_t>(column_slots_.size()), owned = static_cast<int64_t>(own.count);
  const int64_t own_words = ops::OwnerBlock::offset_words(owned, shape.samples) + most_keys(own);
  const auto words = [&](DType dtype, int64_t count) { return arena_.add(TensorSpec(dtype, {count})); };
  const auto records = [&](size_t count, size_t bytes) { return words(DType::i32, static_cast<int64_t>(count * bytes / sizeof(int32_t))); };
  for (int s = 0; s < ring; ++s)
    of_slot_.push_back({words(DType::i32, owned * owned_samples() + 1), words(DType::i64, owned_key_capacity())});
  sent_ = words(DType::i64, words_);
  received_ = words(DType::i64, ranks * own_words);
  vectors_ = arena_.add(TensorSpec(DType::f32, {owned_samples(), owned, shape.dim}));
  parts_ = words(DType::f32, columns * owners_of_each_ * shape.samples * shape.dim);
  const size_t scratch = std::max(ops::key_blocks_scratch_bytes(runtime.device(), static_cast<int64_t>(columns_.size()) * shape.samples),
                                  ops::key_blocks_scratch_bytes(runtime.device(), owned * owned_samples()));
  scratch_ = words(DType::i32, static_cast<int64_t>(scratch / sizeof(int32_t)) + 1);
  blocks_memory_ = records(columns_.size(), sizeof(ops::BlockColumn));
  owners_memory_ = records(owners_.size(), sizeof(ops::OwnerBlock));
  slots_memory_ = records(column_slots_.size(), sizeof(int32_t));
  places_memory_ = records(first_of_slot_.size(), sizeof(int32_t));
  first_memory_ = records(first_of_column_.size(), sizeof(int32_t));
  arena_.build(runtime.device());
  upload(runtime);
  key_blocks_.owner = Placement{kind, ranks}.owners();
}

/// Columns are the vectors that a sample has: a slot's, or each place's where keys are not pooled.
void Exchange::place_columns(Placement::Kind kind) {
  const bool pooled = shape_.slot_places.empty();
  for (size_t s = 0; s < shape_.slot_keys.size(); ++s) {
    first_of_slot_.push_back(static_cast<int32_t>(column_slots_.size()));
    column_slots_.insert(column_slots_.end(), pooled ? 1 : static_cast<size_t>(shape_.slot_places[s]), static_cast<int32_t>(s));
  }
  const Placement placement{kind, comm_.size()};
  first_of_column_.assign(column_slots_.size(), -1);
  for (int r = 0; r < comm_.size(); ++r) {
    ops::OwnerBlock block{static_cast<int32_t>(columns_.size()), 0, words_, 0};
    for (size_t c = 0; c < column_slots_.size(); ++c) {
      if (!placement.holds(r, column_slots_[c])) continue;
      if (first_of_column_[c] < 0) first_of_column_[c] = static_cast<int32_t>(columns_.size());
      columns_.push_back({static_cast<int32_t>(c), column_slots_[c], r});
      if (r == comm_.rank()) owned_slots_.push_back(column_slots_[c]);
    }
    block.count = static_cast<int32_t>(columns_.size()) - block.first;
    block.keys = block.begin + ops::OwnerBlock::offset_words(block.count, shape_.samples);
    words_ = block.keys + most_keys(block);
    owners_.push_back(block);
  }
  // Every column has as many owners as any, and at each of them it stands as many columns on.
  owners_of_each_ = column_slots_.empty() ? 1 : static_cast<int64_t>(columns_.size() / column_slots_.size());
}

int64_t Exchange::most_keys(const ops::OwnerBlock& block) const {
  int64_t of_sample = 0;
  for (int32_t c = block.first; c < block.first + block.count; ++c)
    of_sample += shape_.slot_places.empty() ? shape_.slot_keys[static_cast<size_t>(columns_[static_cast<size_t>(c)].slot)] : 1;
  return std::min(of_sample * shape_.samples, shape_.key_capacity);
}

int64_t Exchange::owned_key_capacity() const { return most_keys(owners_[static_cast<size_t>(comm_.rank())]) * comm_.size(); }

void Exchange::upload(Runtime& runtime) {
  const auto put = [&]<class T>(size_t ticket, const std::vector<T>& values) {
    const Tensor memory = arena_.get(ticket);
    copy_bytes(runtime.compute_stream(), memory.bytes(), values.data(), values.size() * sizeof(T));
    runtime.compute_stream().synchronize();
    return reinterpret_cast<const T*>(memory.bytes());
  };
  key_blocks_.count = static_cast<int32_t>(columns_.size());
  vector_blocks_.columns = static_cast<int64_t>(column_slots_.size());
  vector_blocks_.owners_of_each = owners_of_each_;
  vector_blocks_.block_columns = key_blocks_.columns = put(blocks_memory_, columns_);
  vector_blocks_.owners = key_blocks_.owners = put(owners_memory_, owners_);
  vector_blocks_.first = put(first_memory_, first_of_column_);
  if (!shape_.slot_places.empty()) places_ = {put(places_memory_, first_of_slot_), put(slots_memory_, column_slots_)};
}

void Exchange::send_keys(Context& ctx, int slot, Tensor keys, Tensor offsets, const int32_t* local_rows) {
  const auto slots = static_cast<int64_t>(shape_.slot_keys.size());
  expect_shape("exchange keys", keys, {shape_.key_capacity});
  expect_shape("exchange offsets", offsets, {slots * shape_.samples + 1});
  Slot& at = of_slot_.at(static_cast<size_t>(slot));
  at.mine = {keys.data<const int64_t>(), offsets.data<const int32_t>(), slots, shape_.samples, shape_.key_capacity, vector_blocks_.columns, places_};
  std::byte* scratch = arena_.get(scratch_).bytes();
  const Tensor sent = arena_.get(sent_), received = arena_.get(received_);
  ops::KeyBlocks blocks = key_blocks_;
  blocks.local_rows = local_rows;
  ops::split_keys(ctx, at.mine, blocks, sent, scratch);
  Parts to;
  for (const ops::OwnerBlock& block : owners_) to.add(block.begin, block.keys - block.begin + most_keys(block));
  const int64_t own_words = received.elements() / comm_.size();
  comm_.all_to_all(ctx, sent, to, received, Parts::equal(comm_.size(), own_words));
  ops::merge_keys(ctx, {comm_.size(), static_cast<int64_t>(owned_slots_.size()), shape_.samples, own_words}, received, owned_offsets(slot), owned_keys(slot),
                  scratch);
}

Parts Exchange::parts_of_owners() const {
  Parts parts;
  for (const ops::OwnerBlock& block : owners_) parts.add(block.first * shape_.samples * shape_.dim, block.count * shape_.samples * shape_.dim);
  return parts;
}

Parts Exchange::parts_of_ranks() const {
  return Parts::equal(comm_.size(), static_cast<int64_t>(owned_slots_.size()) * shape_.samples * shape_.dim);
}

void Exchange::send_vectors(Context& ctx, int slot, Tensor y) {
  const Tensor parts = arena_.get(parts_);
  comm_.all_to_all(ctx, owned_vectors(), parts_of_ranks(), parts, parts_of_owners());
  ops::join_vectors(ctx, of_slot_.at(static_cast<size_t>(slot)).mine, vector_blocks_, shape_.combiner, parts, y);
}

void Exchange::send_gradients(Context& ctx, int slot, Tensor dy) {
  // Owners that have every column all get the same part.
  const bool shared = owners_of_each_ > 1;
  const Tensor all = arena_.get(parts_), parts(all.bytes(), TensorSpec(DType::f32, {dy.elements()}), all.device());
  ops::split_gradients(ctx, of_slot_.at(static_cast<size_t>(slot)).mine, vector_blocks_, shape_.combiner, dy, parts);
  Parts to = parts_of_owners();
  if (shared) to.begin.assign(to.begin.size(), 0);
  comm_.all_to_all(ctx, parts, to, owned_vectors(), parts_of_ranks());
}

}  // namespace hctr
