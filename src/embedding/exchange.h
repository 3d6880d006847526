// How the batches of all ranks reach the owners of their rows, and the vectors come back. See docs/distributed.md.
//
//   this rank's samples                                       this rank's rows
//   keys, offsets ── split_keys ── all-to-all ── merge_keys ──> keys, offsets of the samples of all ranks
//   y  <── join_vectors, if needed ── peer exchange <── pool_shards ── their vectors
//   dy ──> split_gradients ────────── peer exchange ───────────────> their gradients
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/peer_exchange.h"
#include "device/arena.h"
#include "embedding/placement.h"
#include "embedding/table_spec.h"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/owner_vectors.h"

namespace hctr {

/// What else is in the vectors that an exchange brings: nothing; those of slots that every rank has; or rows of other
/// keys of the same slots.
enum class ReplicatedPart { nothing, slots, keys };

/// The batches of one size, of one embedding. What is sent and received has one size, whatever a batch holds: the most
/// that it may hold.
class Exchange {
 public:
  struct Shape {
    std::vector<int64_t> slot_keys;  ///< [slots] most keys of a bag
    int64_t samples = 0, key_capacity = 0, dim = 0;
    ops::Combiner combiner = ops::Combiner::sum;
    DType dtype = DType::f32;  ///< that vectors and gradients travel in
    bool gradients = true;     ///< whether send_gradients() is ever called
    ReplicatedPart replicated = ReplicatedPart::nothing;
    std::optional<Tensor>
        y{};  ///< what receive_vectors() will be given each time, if known: owners write straight to it where they can

    bool pooled() const { return combiner != ops::Combiner::none; }
  };
  /// For batches that come in `ring` slots.
  Exchange(Runtime&, Communicator&, const Placement&, const Shape&, int ring);

  /// The slot of each column that this rank owns, numbered as in the placement, and the sizes of the batches it gets.
  const std::vector<int32_t>& owned_slots() const { return owned_slots_; }
  int64_t owned_samples() const { return shape_.samples * comm_.size(); }
  int64_t owned_key_capacity() const;

  /// Keys to their owners. Shapes: keys i64 [key_capacity], offsets i32 [slots * samples + 1]. `local_rows`
  /// [key_capacity]: keys that have a row here (not 0) stay, though bags count them.
  void send_keys(Context&, int buffer, Tensor keys, Tensor offsets, const int32_t* local_rows = nullptr);
  /// What came: the keys of the samples of all ranks, [owned_key_capacity] and [owned_slots * owned_samples + 1].
  Tensor owned_keys(int buffer) const { return arena_.get(batches_[static_cast<size_t>(buffer)].keys); }
  Tensor owned_offsets(int buffer) const { return arena_.get(batches_[static_cast<size_t>(buffer)].offsets); }

  /// Vectors leave: `pool` writes them to the parts that it is given.
  void send_vectors(Context&, const std::function<void(const ops::SampleShards&)>& pool);
  /// Where nothing is in `y` besides: what nobody sends, before receive_vectors() and beside send_vectors() if one
  /// likes.
  void clear_unowned(Context&, int buffer, Tensor y);
  /// Makes y of what comes; add_received_vectors() adds it (ops::add_joined_vectors). Shapes: y [samples, columns,
  /// dim], as the table's.
  void receive_vectors(Context&, int buffer, Tensor y);
  void add_received_vectors(Context&, int buffer, Tensor y);
  /// The owners of vectors of y that write straight to it; null where nobody does, but add_received_vectors() adds
  /// them.
  const ops::OwnerVectors* writers(int buffer) const {
    return straight_ ? &batches_.at(static_cast<size_t>(buffer)).joined : nullptr;
  }

  /// After receive_gradients() what comes is in owned_gradients(), [owned_samples, owned_slots, dim / pieces], of the
  /// type they travel in.
  void send_gradients(Context&, int buffer, Tensor dy, ops::OverflowSearch);
  void receive_gradients(Context& ctx) { to_owners_->wait(ctx); }
  Tensor owned_gradients() const { return owners_memory(); }

 private:
  struct Batch {
    size_t offsets, keys, present;  // tickets
    ops::OwnerVectors joined{}, split{};
    ops::KeyBatch mine{};  // set by send_keys, the same each time
  };
  /// Where an owner has a column, among its own.
  struct AtOwner {
    int32_t owner;
    int64_t column;
  };
  void place_columns(const Placement&);
  bool one_key_each() const;
  bool may_be_written_by_owners() const;
  void make_exchanges(Runtime&);
  void list_columns(Runtime&);
  void list_addresses(Runtime&);
  template <class T>
  const T* put(Runtime&, const std::vector<T>&);
  int64_t most_keys(const ops::OwnerKeys&) const;
  size_t vector_bytes() const { return static_cast<size_t>(piece_dim_) * size_of(shape_.dtype); }
  int64_t owned() const { return static_cast<int64_t>(owned_slots_.size()); }
  Tensor samples_memory() const;
  Tensor owners_memory() const;
  /// In owners_memory(), those of this rank's own samples.
  std::byte* own_vectors() const;

  Communicator& comm_;
  Shape shape_;
  std::vector<ops::OwnedColumn> columns_;
  std::vector<ops::OwnerKeys> owners_;
  std::vector<int32_t> column_slots_, owned_slots_, first_of_slot_;
  std::vector<int32_t> owned_columns_;           // which of a sample's vectors, each piece one, this rank's columns are
  std::vector<std::vector<AtOwner>> at_owners_;  // of each of those vectors, in the order of owners
  bool owners_are_alike_ = false;                // every one has every column
  int64_t words_ = 0;                            // of all messages sent
  int64_t pieces_ = 1, piece_dim_ = 0;

  Arena arena_;
  std::vector<Batch> batches_;
  size_t sent_ = 0, received_ = 0, scratch_ = 0;
  std::vector<Buffer> lists_;
  ops::KeySplit key_split_;
  ops::OutputColumns columns_of_slots_;
  ops::SampleShards shards_;
  // The vectors of this rank's samples, from all owners, and those of its rows, for the samples of all ranks; each only
  // where it is needed. What arrives in one waits in the other, of another rank, where it cannot be written straight
  // away.
  std::optional<Buffer> of_samples_, of_owned_;
  std::unique_ptr<PeerExchange> to_samples_, to_owners_;  // of vectors, and of gradients
  bool straight_ = false;                                 // owners write to y
};

}  // namespace hctr
