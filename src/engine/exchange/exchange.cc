#include "engine/exchange/exchange.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "engine/spec/slot_vector_columns.h"

namespace hctr {

Exchange::Exchange(Runtime& runtime, Communicator& comm, const Placement& placement, const Shape& shape, int ring)
    : comm_(comm), shape_(shape), pieces_(placement.pieces), piece_dim_(shape.dim / placement.pieces) {
  place_columns(placement);
  const int64_t bags = static_cast<int64_t>(columns_.size()) * shape.samples;
  const auto words = [&](DType dtype, int64_t count) { return arena_.add(TensorSpec(dtype, {count})); };
  for (int s = 0; s < ring; ++s)
    batches_.push_back({words(DType::i32, owned() * owned_samples() + 1), words(DType::i64, owned_key_capacity()),
                        words(DType::i32, bags / 4 + 1)});
  const bool one_host = !comm.several_hosts();
  if (one_host) {
    received_ = words(DType::i64, comm.size() * message_words(owners_[static_cast<size_t>(comm.rank())]));
    const size_t scratch = ops::key_split_scratch_bytes(runtime.device(), bags, comm.size());
    scratch_ = words(DType::i32, static_cast<int64_t>(scratch / sizeof(int32_t)) + 1);
  }
  arena_.build(runtime.device());
  list_columns(runtime);
  if (one_host) make_key_exchange(runtime);
  one_host ? make_exchanges(runtime) : make_unique_exchange(runtime, ring);
  list_received_vectors(runtime);
  list_sent_vectors(runtime);
  if (shape.gradients) list_sent_gradients(runtime);
}

/// Assigns columns to owners. A column is one vector of a sample: one per slot, or one per key of a bag if keys are not
/// pooled. If vectors are split, each piece of a vector is a separate column at the owner of the piece.
void Exchange::place_columns(const Placement& placement) {
  SlotVectorColumns columns = slot_vector_columns(std::ssize(shape_.slot_keys), shape_.pooled(), shape_.slot_keys);
  first_of_slot_ = std::move(columns.of_slot);
  column_slots_ = std::move(columns.slots);
  const auto all = static_cast<int32_t>(static_cast<int64_t>(column_slots_.size()) * pieces_);
  at_owners_.resize(static_cast<size_t>(all));
  const auto slot_of = [&](int64_t c) {
    return column_slots_[static_cast<size_t>(c / pieces_)] * pieces_ + c % pieces_;
  };
  owners_.resize(static_cast<size_t>(comm_.size()));
  for (const int32_t r : HostGroups(comm_).owner_order()) {
    ops::OwnerKeys owner{static_cast<int32_t>(columns_.size()), 0, words_, 0};
    for (int32_t c = 0; c < all; ++c) {
      const int64_t slot = slot_of(c);
      if (!placement.holds(r, slot)) continue;
      at_owners_[static_cast<size_t>(c)].push_back({r, owner.count++});
      columns_.push_back({static_cast<int32_t>(c / pieces_), r, placement.spread(slot) ? comm_.size() : 1});
      if (r != comm_.rank()) continue;
      owned_slots_.push_back(static_cast<int32_t>(slot));
      owned_columns_.push_back(c);
    }
    owner.keys = owner.begin + ops::OwnerKeys::offset_words(owner.count, shape_.samples);
    words_ = owner.keys + most_keys(owner);
    owners_[static_cast<size_t>(r)] = owner;
  }
  for (std::vector<AtOwner>& owners : at_owners_)
    std::sort(owners.begin(), owners.end(), [](const AtOwner& a, const AtOwner& b) { return a.owner < b.owner; });
  const int64_t bags = owned() * owned_samples(), most = std::numeric_limits<int32_t>::max() - 1;
  if (owned_key_capacity() > most || bags > most)
    throw Error(Kind::config, cat("a batch of all ranks may send ", owned_key_capacity(), " keys of ", bags,
                                  " bags to rank ", comm_.rank(), ", but a rank supports at most ", most,
                                  ": set a smaller \"batchsize\", or \"placement\": \"localized\""));
  owners_are_alike_ = static_cast<int64_t>(columns_.size()) == int64_t{all} * comm_.size();
}

int64_t Exchange::keys_of_bag(const ops::OwnedColumn& column) const {
  return shape_.pooled() ? shape_.slot_keys[static_cast<size_t>(column.column)] : 1;
}

int64_t Exchange::most_keys(const ops::OwnerKeys& owner) const {
  int64_t of_sample = 0;
  for (int32_t c = owner.first; c < owner.first + owner.count; ++c)
    of_sample += keys_of_bag(columns_[static_cast<size_t>(c)]);
  return std::min(of_sample * shape_.samples, shape_.key_capacity * pieces_);
}

int64_t Exchange::owned_key_capacity() const {
  return most_keys(owners_[static_cast<size_t>(comm_.rank())]) * comm_.size();
}

bool Exchange::one_key_each() const {
  return !shape_.pooled() ||
         std::all_of(shape_.slot_keys.begin(), shape_.slot_keys.end(), [](int64_t most) { return most <= 1; });
}

/// Whether owners can write vectors directly to y. Requires that a single owner computes each vector.
bool Exchange::may_be_written_by_owners() const {
  if (!shape_.y || shape_.y->dtype() != shape_.dtype) return false;
  if (one_key_each()) return true;
  if (shape_.replicated == ReplicatedPart::keys ||
      (shape_.combiner != ops::Combiner::sum && shape_.combiner != ops::Combiner::none))
    return false;
  return std::all_of(at_owners_.begin(), at_owners_.end(), [](const auto& owners) { return owners.size() <= 1; });
}

Tensor Exchange::samples_memory() const {
  return Tensor(of_samples_->data(),
                TensorSpec(shape_.dtype, {static_cast<int64_t>(columns_.size()) * shape_.samples * piece_dim_}),
                of_samples_->device());
}

Tensor Exchange::owners_memory() const {
  return Tensor(of_owned_->data(), TensorSpec(shape_.dtype, {owned_samples(), owned(), piece_dim_}),
                of_owned_->device());
}

std::byte* Exchange::vectors_of(int rank) const {
  const int64_t index = unique_ ? unique_->index_here(rank) : rank;
  return of_owned_->data() + static_cast<size_t>(index * shape_.samples * owned()) * vector_bytes();
}

void Exchange::make_unique_exchange(Runtime& runtime, int ring) {
  UniqueExchange::Layout layout{.split = key_split_,
                                .owners = owners_,
                                .samples = shape_.samples,
                                .key_capacity = shape_.key_capacity * pieces_,
                                .owned_columns = owned(),
                                .owned_key_capacity = owned_key_capacity(),
                                .dim = piece_dim_,
                                .dtype = shape_.dtype,
                                .storage = shape_.storage,
                                .gradients = shape_.gradients,
                                .sums_in_hosts = shape_.sums_in_hosts};
  for (const ops::OwnerKeys& owner : owners_) layout.most_keys.push_back(most_keys(owner));
  for (const ops::OwnedColumn& column : columns_)
    layout.keys_of_bag.push_back(static_cast<int32_t>(keys_of_bag(column)));
  unique_ = std::make_unique<UniqueExchange>(runtime, comm_, HostGroups(comm_), layout, ring);
  const auto allocate = [&](int64_t vectors) {
    return Buffer(runtime.device(), static_cast<size_t>(std::max<int64_t>(1, vectors)) * vector_bytes());
  };
  of_owned_ = allocate(unique_->gradients());
  of_samples_ = allocate(static_cast<int64_t>(columns_.size()) * shape_.samples);
}

std::byte* Exchange::vectors_from(int owner) const {
  return of_samples_->data() +
         static_cast<size_t>(owners_[static_cast<size_t>(owner)].first * shape_.samples) * vector_bytes();
}

void Exchange::make_key_exchange(Runtime& runtime) {
  const Tensor received = arena_.get(received_);
  zero(runtime.compute_stream(), received);  // if the first round is aborted, the buffer must contain no keys
  runtime.compute_stream().synchronize();
  const RankRanges of_ranks = RankRanges::equal(comm_.size(), received.elements() / comm_.size());
  to_merge_ = comm_.make_peer_exchange({received, of_ranks});
  if (!to_merge_) {
    const TensorSpec all(DType::i64, {words_});
    sent_keys_ = Buffer(runtime.device(), static_cast<size_t>(words_) * sizeof(int64_t));
    RankRanges of_owners;
    for (const ops::OwnerKeys& owner : owners_) of_owners.add(owner.begin, message_words(owner));
    to_merge_ =
        comm_.make_peer_exchange({received, of_ranks, Tensor(sent_keys_->data(), all, runtime.device()), of_owners});
  }
  std::vector<int64_t*> messages;
  for (int r = 0; r < comm_.size(); ++r) messages.push_back(reinterpret_cast<int64_t*>(to_merge_->destination(r)));
  key_split_.messages = lists_.put(runtime, messages);
  key_split_.aborted = to_merge_->aborted();
}

void Exchange::make_exchanges(Runtime& runtime) {
  const auto rank = static_cast<size_t>(comm_.rank());
  RankRanges of_owners, of_ranks = RankRanges::equal(comm_.size(), owned() * shape_.samples * piece_dim_);
  for (const ops::OwnerKeys& owner : owners_)
    of_owners.add(owner.first * shape_.samples * piece_dim_, owner.count * shape_.samples * piece_dim_);
  const auto without_own = [rank](RankRanges parts) {
    parts.count[rank] = 0;
    return parts;
  };
  const auto allocate = [&](int64_t vectors) {
    return Buffer(runtime.device(), static_cast<size_t>(std::max<int64_t>(1, vectors)) * vector_bytes());
  };
  const int64_t for_samples = static_cast<int64_t>(columns_.size()) * shape_.samples;
  if (may_be_written_by_owners()) {
    const std::string stride =
        // owners use their own stride to compute addresses in y, so the strides must be equal
        std::to_string(shape_.y->row_stride());
    HCTR_EXPECT(comm_.broadcast(stride, 0) == stride, "the stride of vectors is ", stride,
                " elements, and differs from that of rank 0");
    to_samples_ = comm_.make_peer_exchange({*shape_.y, RankRanges::equal(comm_.size(), 0)});
  }
  straight_ = to_samples_ != nullptr;
  if (!straight_ || shape_.gradients) of_owned_ = allocate(owned() * owned_samples());
  if (!straight_) {
    of_samples_ = allocate(for_samples);
    to_samples_ =
        comm_.make_peer_exchange({samples_memory(), without_own(of_owners), owners_memory(), without_own(of_ranks)});
  }
  if (!shape_.gradients) return;
  to_owners_ = comm_.make_peer_exchange({owners_memory(), of_ranks});
  if (to_owners_) return make_gradient_blocks(runtime);
  if (!of_samples_) of_samples_ = allocate(for_samples);
  if (owners_are_alike_)
    // all owners, including this rank, get one common message at the start of the buffer, so `begin` is 0 for every
    // owner
    of_owners.begin.assign(of_owners.begin.size(), 0);
  else
    of_owners = without_own(of_owners), of_ranks = without_own(of_ranks);
  to_owners_ = comm_.make_peer_exchange({owners_memory(), of_ranks, samples_memory(), of_owners});
}

void Exchange::list_columns(Runtime& runtime) {
  key_split_.ranks = comm_.size();
  key_split_.count = static_cast<int32_t>(columns_.size());
  key_split_.columns = lists_.put(runtime, columns_);
  key_split_.owners = lists_.put(runtime, owners_);
  if (!shape_.pooled()) columns_of_slots_ = {lists_.put(runtime, first_of_slot_), lists_.put(runtime, column_slots_)};
}

void Exchange::send_keys(Context& ctx, Recording* recording, int buffer, Tensor keys, Tensor offsets,
                         const int32_t* local_rows) {
  const auto slots = static_cast<int64_t>(shape_.slot_keys.size());
  expect_shape("exchange keys", keys, {shape_.key_capacity});
  expect_shape("exchange offsets", offsets, {slots * shape_.samples + 1});
  Batch& at = batches_.at(static_cast<size_t>(buffer));
  at.mine = {keys.data<const int64_t>(),
             offsets.data<const int32_t>(),
             slots,
             shape_.samples,
             shape_.key_capacity,
             static_cast<int64_t>(column_slots_.size()),
             columns_of_slots_};
  auto* const present = reinterpret_cast<uint8_t*>(arena_.get(at.present).bytes());
  if (unique_) {
    outside(recording, ctx, [this, buffer, &at, local_rows, present](Context& own) {
      unique_->send_keys(own, buffer, at.mine, local_rows, present);
    });
    return;
  }
  ops::KeySplit split = key_split_;
  split.local_rows = local_rows;
  to_merge_->begin_write(ctx);
  ops::split_keys(ctx, at.mine, split, present, arena_.get(scratch_).bytes());
}

void Exchange::gather_keys(Context& ctx, Recording* recording, int buffer) {
  if (!unique_) return to_merge_->end_write_and_wait(ctx);
  outside(recording, ctx, [this, buffer](Context& own) { unique_->gather_keys(own, buffer); });
}

void Exchange::receive_keys(Context& ctx, Recording* recording, int buffer) {
  if (!unique_) {
    const Tensor received = arena_.get(received_);
    return ops::merge_keys(ctx, {comm_.size(), owned(), shape_.samples, received.elements() / comm_.size()}, received,
                           owned_offsets(buffer), owned_keys(buffer));
  }
  outside(recording, ctx, [this, buffer](Context& own) {
    unique_->receive_keys(own, buffer, owned_offsets(buffer), owned_keys(buffer));
  });
  if (recording) recording->cut();
}

void Exchange::send_vectors(Context& ctx, int buffer, const OwnedRows& rows,
                            const std::function<void(const ops::SampleShards&)>& pool) {
  if (!unique_) to_samples_->begin_write(ctx);
  pool(shards_);
  unique_ ? unique_->send_vectors(ctx, buffer, unique_memory(), rows) : to_samples_->end_write(ctx);
}

void Exchange::wait_for_vectors(Context& ctx) {
  if (!unique_) to_samples_->wait(ctx);
}

void Exchange::clear_unowned(Context& ctx, int buffer, Tensor y) {
  if (straight_) ops::clear_unowned(ctx, batches_.at(static_cast<size_t>(buffer)).joined, y);
}

void Exchange::receive_vectors(Context& ctx, int buffer, Tensor y) {
  wait_for_vectors(ctx);
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  if (!straight_) {
    // mine.keys is null if the step is recorded in pieces, because a piece cannot use data that depends on keys
    if (!at.mine.keys)
      throw Error(Kind::config,
                  "steps recorded in pieces need vectors that GPUs write directly to their destination: bags of "
                  "one key, vectors of a multiple of 16 bytes, and GPUs that can access each other's memory");
    return ops::join_vectors(ctx, at.mine, at.joined, shape_.combiner, y);
  }
  HCTR_EXPECT(y.bytes() == shape_.y->bytes(), "the owner ranks wrote the vectors to another buffer");
}

void Exchange::add_received_vectors(Context& ctx, int buffer, Tensor y) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  if (straight_) return receive_vectors(ctx, buffer, y);
  wait_for_vectors(ctx);
  ops::add_joined_vectors(ctx, at.mine, at.joined, shape_.combiner, y);
}

}  // namespace hctr
