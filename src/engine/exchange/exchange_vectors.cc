// The forward pass of an exchange whose vectors copy engines send in pieces.
#include "engine/exchange/exchange.h"

namespace hctr {

/// Copy engines send vectors if owners would write them to y, each vector has one owner, and they are long. The owner
/// pools them in the memory that receives gradients later in the step.
void Exchange::make_vector_copies(Runtime& runtime) {
  if (!shape_.rules.vectors_in_pieces || !straight_ || !to_samples_->direct() || comm_.size() == 1 ||
      shape_.samples < shape_.rules.least_piece_samples || vector_bytes() < kLongVector ||
      shape_.replicated != ReplicatedPart::nothing || !one_owner_each())
    return;
  const auto bytes = static_cast<int64_t>(vector_bytes());
  std::vector<VectorCopies::Piece> pieces = vector_pieces(shape_.samples);
  for (VectorCopies::Piece& piece : pieces)
    for (int i = 1; i < comm_.size(); ++i) {
      const int r = (comm_.rank() + i) % comm_.size();
      SampleVectors y{to_samples_->destination(r), static_cast<int64_t>(at_owners_.size()), bytes,
                      shape_.y->row_stride() * static_cast<int64_t>(size_of(shape_.dtype))};
      y.first += piece.begin * y.stride;
      OwnerColumns own{{owned_columns_.begin(), owned_columns_.end()}, vectors_of(r) + piece.begin * owned() * bytes};
      for (const ops::VectorBlock& copy : column_copies(own, y, piece.count, true)) piece.copies.push_back(copy);
    }
  copies_ = std::make_unique<VectorCopies>(runtime, std::move(pieces));
}

void Exchange::list_packed_shards(Runtime& runtime) {
  std::vector<std::byte*> others, own;
  for (int r = 0; r < comm_.size(); ++r) {
    others.push_back(r == comm_.rank() ? nullptr : vectors_of(r));
    own.push_back(r == comm_.rank() ? shape_.y->bytes() : nullptr);
  }
  own_shard_ = packed_shards_ = shards_;
  own_shard_.memory.remote = packed_shards_.memory.remote = false;
  own_shard_.shard = lists_.put(runtime, own);
  packed_shards_.shard = lists_.put(runtime, others);
  packed_shards_.row_stride = owned() * piece_dim_;
  packed_shards_.targets = nullptr;
  packed_shards_.empty_bags = own_shard_.empty_bags = true;  // copy engines send all vectors
  for (const std::byte* part : others) packed_shards_.memory.align(reinterpret_cast<uintptr_t>(part));
  packed_shards_.memory.align(static_cast<size_t>(packed_shards_.row_stride) * size_of(shape_.dtype));
}

void Exchange::send_in_pieces(Context& ctx, const std::function<void(const ops::SampleShards&)>& pool) {
  for (size_t p = 0; p < copies_->pieces().size(); ++p) {
    const VectorCopies::Piece& piece = copies_->pieces()[p];
    ops::SampleShards packed = packed_shards_;
    packed.begin = piece.begin;
    packed.count = piece.count;
    pool(packed);
    if (p == 0) to_samples_->begin_write(ctx);  // packing does not need the other ranks
    copies_->start(ctx, p);
  }
  pool(own_shard_);
  copies_->join(ctx);
  to_samples_->end_write(ctx);
}

}  // namespace hctr
