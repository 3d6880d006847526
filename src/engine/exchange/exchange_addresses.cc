// Lists the addresses of vectors: by column for received vectors and sent gradients, by rank for sent vectors.
#include "engine/exchange/exchange.h"

namespace hctr {

ops::OwnerVectors Exchange::owner_vectors(Runtime& runtime, const ops::RankMemory& memory,
                                          const std::function<std::vector<ops::RemoteColumn>(size_t)>& columns_of) {
  ops::OwnerVectors owners{.memory = memory, .columns = static_cast<int64_t>(at_owners_.size()), .pieces = pieces_};
  std::vector<int32_t> first = {0};
  std::vector<ops::RemoteColumn> listed;
  for (size_t v = 0; v < at_owners_.size(); ++v) {
    for (const ops::RemoteColumn& column : columns_of(v)) {
      owners.memory.align(reinterpret_cast<uintptr_t>(column.vector));
      listed.push_back(column);
    }
    first.push_back(static_cast<int32_t>(listed.size()));
  }
  owners.memory.align(vector_bytes());
  owners.first = lists_.put(runtime, first);
  owners.remote_columns = lists_.put(runtime, listed);
  return owners;
}

std::vector<ops::RemoteColumn> Exchange::remote_columns(size_t v,
                                                        const std::function<std::byte*(int32_t)>& message_of) const {
  std::vector<ops::RemoteColumn> columns;
  for (const AtOwner& at : at_owners_[v]) {
    const ops::OwnerKeys& owner = owners_[static_cast<size_t>(at.owner)];
    std::byte* const message = message_of(at.owner);
    columns.push_back({message ? message + static_cast<size_t>(at.column) * vector_bytes() : nullptr, owner.count,
                       owner.first * shape_.samples + at.column});
  }
  return columns;
}

void Exchange::list_received_vectors(Runtime& runtime) {
  const auto message_from = [&](int32_t owner) -> std::byte* {
    // Owners write directly to `y`, so this rank reads only `present`, and the vectors have no address here.
    if (straight_) return nullptr;
    return owner == comm_.rank() ? own_vectors() : vectors_from(owner);
  };
  const ops::OwnerVectors joined = owner_vectors(runtime, {.dtype = shape_.dtype, .remote = false, .aborted = nullptr},
                                                 [&](size_t v) { return remote_columns(v, message_from); });
  for (Batch& batch : batches_) {
    batch.joined = joined;
    batch.joined.present = reinterpret_cast<const uint8_t*>(arena_.get(batch.present).bytes());
  }
}

void Exchange::list_sent_vectors(Runtime& runtime) {
  std::vector<std::byte*> parts;
  for (int r = 0; r < comm_.size(); ++r)
    parts.push_back(unique_ && !unique_->sends_pooled(r)           ? nullptr
                    : unique_ || (r == comm_.rank() && !straight_) ? vectors_of(r)
                    : r == comm_.rank()                            ? shape_.y->bytes()
                                                                   : to_samples_->destination(r));
  shards_ = {.memory = {.dtype = shape_.dtype,
                        .remote = to_samples_ && to_samples_->direct(),
                        .aborted = to_samples_ ? to_samples_->aborted() : nullptr},
             .shard = lists_.put(runtime, parts),
             .ranks = comm_.size(),
             .samples = shape_.samples,
             .row_stride = straight_ ? shape_.y->row_stride() : owned() * piece_dim_,
             .targets = straight_ ? lists_.put(runtime, owned_columns_) : nullptr,
             .first = (comm_.rank() + 1) % comm_.size()};
  for (const std::byte* part : parts) shards_.memory.align(reinterpret_cast<uintptr_t>(part));
  shards_.memory.align(vector_bytes());
  shards_.memory.align(static_cast<size_t>(shards_.row_stride) * size_of(shape_.dtype));
}

void Exchange::list_sent_gradients(Runtime& runtime) {
  const bool direct = to_owners_ && to_owners_->direct(), one_message = to_owners_ && owners_are_alike_ && !direct;
  const auto message_to = [&](int32_t owner) {
    return owner == comm_.rank() ? own_vectors() : unique_ ? vectors_from(owner) : to_owners_->destination(owner);
  };
  const ops::RankMemory memory{
      .dtype = shape_.dtype, .remote = direct, .aborted = to_owners_ ? to_owners_->aborted() : nullptr};
  const ops::OwnerVectors split = owner_vectors(runtime, memory, [&](size_t v) {
    if (one_message)
      return std::vector<ops::RemoteColumn>{
          {to_owners_->destination(0) + v * vector_bytes(), static_cast<int64_t>(at_owners_.size()), 0}};
    return remote_columns(v, message_to);
  });
  for (Batch& batch : batches_) {
    batch.split = split;
    // If all owners get one common message, `present` stays null, because that message contains every vector.
    if (!one_message) batch.split.present = batch.joined.present;
  }
}

}  // namespace hctr
