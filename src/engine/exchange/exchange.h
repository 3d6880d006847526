// The exchange between the ranks of samples and the owner ranks of rows: keys go to the owners, vectors come back,
// gradients go to the owners. See docs/distributed.md.
//
//   this rank's samples                                       this rank's rows
//   keys, offsets ── split_keys ── peer exchange ── merge_keys ──> keys, offsets of the samples of all ranks
//   y  <── join_vectors, if needed ── peer exchange <── pool_shards ── their vectors
//   dy ──> split_gradients, or copies ── peer exchange ────────────> their gradients
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/comm/peer_exchange.h"
#include "core/device/arena.h"
#include "core/device/recording.h"
#include "engine/exchange/gradient_blocks.h"
#include "engine/exchange/unique_exchange.h"
#include "engine/placement/placement.h"
#include "engine/table/table.h"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/owner_vectors.h"

namespace hctr {

/// The part of an embedding that is replicated instead of exchanged: nothing, all rows of some slots, or some keys of
/// any slot.
enum class ReplicatedPart { nothing, slots, keys };

/// Exchanges batches of one size for one embedding. On one host all messages have the same size, which suffices for the
/// largest possible batch. Between hosts the size of messages depends on the batch (UniqueExchange).
class Exchange {
 public:
  struct Shape {
    std::vector<int64_t> slot_keys;  ///< [slots]: maximum keys per bag
    int64_t samples = 0, key_capacity = 0, dim = 0;
    ops::Combiner combiner = ops::Combiner::sum;
    DType dtype = DType::f32;    ///< dtype of exchanged vectors and gradients
    DType storage = DType::f32;  ///< dtype of rows
    bool gradients = true;       ///< whether send_gradients() is ever called
    bool sums_in_hosts = false;  ///< see UniqueExchange::Layout
    ReplicatedPart replicated = ReplicatedPart::nothing;
    std::optional<Tensor>
        y{};  ///< the `y` of every receive_vectors() call, if known; owners write directly to y if possible

    bool pooled() const { return combiner != ops::Combiner::none; }
  };
  /// `ring`: the number of batch buffers.
  Exchange(Runtime&, Communicator&, const Placement&, const Shape&, int ring);

  /// owned_slots(): the slot of each column that this rank owns, with the slot numbers of the placement.
  /// owned_samples() and owned_key_capacity(): the sizes of the batches that this rank receives.
  const std::vector<int32_t>& owned_slots() const { return owned_slots_; }
  int64_t owned_samples() const { return shape_.samples * comm_.size(); }
  int64_t owned_key_capacity() const;

  // These three calls send keys to the owners of their rows. Between hosts (UniqueExchange) they cannot be recorded,
  // and each call begins a new piece of the recording.

  /// Shapes: keys i64 [key_capacity], offsets i32 [slots * samples + 1]. `local_rows` [key_capacity]: a key with a
  /// nonzero local row is not sent, but a bag's mean counts it as a key of the bag.
  void send_keys(Context&, Recording*, int buffer, Tensor keys, Tensor offsets, const int32_t* local_rows = nullptr);
  void gather_keys(Context&, Recording*, int buffer);
  void receive_keys(Context&, Recording*, int buffer);
  /// The received keys of the samples of all ranks: keys [owned_key_capacity], offsets [owned_slots * owned_samples +
  /// 1].
  Tensor owned_keys(int buffer) const { return arena_.get(batches_[static_cast<size_t>(buffer)].keys); }
  Tensor owned_offsets(int buffer) const { return arena_.get(batches_[static_cast<size_t>(buffer)].offsets); }

  /// Whether all calls only queue copies and kernels (core/device/launch.cuh). True if ranks can write to each other's
  /// memory.
  bool exchanges_by_kernels() const {
    const auto direct = [](const auto& exchange) { return exchange && exchange->direct(); };
    return direct(to_merge_) && direct(to_samples_) && (!shape_.gradients || direct(to_owners_));
  }

  /// Whether all message sizes are known before the batch. If not, only send_keys(), clear_unowned(), receive_vectors()
  /// and add_received_vectors() can be recorded.
  bool fixed_sizes() const { return unique_ == nullptr; }
  BytesBetweenHosts bytes_between_hosts() const { return unique_ ? unique_->bytes() : BytesBetweenHosts{}; }

  /// Sends the vectors of `rows`. `pool` writes the vectors to the given shards.
  void send_vectors(Context&, int buffer, const OwnedRows& rows,
                    const std::function<void(const ops::SampleShards&)>& pool);
  /// Zeros the vectors of `y` that no owner sends, if nothing is replicated. Call before receive_vectors(). May run
  /// concurrently with send_vectors().
  void clear_unowned(Context&, int buffer, Tensor y);
  /// receive_vectors() joins the received vectors into y. add_received_vectors() adds the received vectors to y
  /// (ops::add_joined_vectors). Shape: y [samples, columns, dim].
  void receive_vectors(Context&, int buffer, Tensor y);
  void add_received_vectors(Context&, int buffer, Tensor y);
  /// Describes the vectors that owners write directly to y. If owners do not write to y, returns null, and
  /// add_received_vectors() adds the received vectors.
  const ops::OwnerVectors* writers(int buffer) const {
    return straight_ ? &batches_.at(static_cast<size_t>(buffer)).joined : nullptr;
  }

  /// Whether send_gradients() uses copy engines. This requires contiguous samples in dy, the exchange dtype, and no
  /// overflow check.
  bool sends_gradients_by_engines() const { return blocks_ != nullptr; }
  /// Call before send_gradients(). Signals that owned_gradients() of the previous batch have been read.
  void expect_gradients(Context&);
  /// receive_gradients() waits for the gradients of this rank's rows. owned_gradients() returns these gradients, in the
  /// exchange dtype. If key_gradients() is null, there is one gradient per bag, and the shape is [owned_samples,
  /// owned_slots, dim / pieces]. If key_gradients() is not null, it maps each key to its gradient, and the shape is
  /// [number of gradients, 1, dim / pieces].
  void send_gradients(Context&, int buffer, Tensor dy, ops::OverflowSearch);
  void receive_gradients(Context&, int buffer);
  Tensor owned_gradients() const;
  KeyGradients key_gradients(int buffer) const;

 private:
  struct Batch {
    size_t offsets, keys, present;  // tickets
    ops::OwnerVectors joined{}, split{};
    ops::KeyBatch mine{};  // set by send_keys(); every call sets the same addresses
  };
  /// A column at an owner: the owner's rank, and the column's index among the columns of that owner.
  struct AtOwner {
    int32_t owner;
    int64_t column;
  };
  void place_columns(const Placement&);
  bool one_key_each() const;
  bool may_be_written_by_owners() const;
  int64_t message_words(const ops::OwnerKeys& owner) const { return owner.keys - owner.begin + most_keys(owner); }
  void make_key_exchange(Runtime&);
  void make_exchanges(Runtime&);
  void make_gradient_blocks(Runtime&);
  void list_columns(Runtime&);
  void list_received_vectors(Runtime&);
  void list_sent_vectors(Runtime&);
  void list_sent_gradients(Runtime&);
  /// The messages of all owners. columns_of(v) returns the remote columns of vector v of a sample.
  ops::OwnerVectors owner_vectors(Runtime&, const ops::RankMemory&,
                                  const std::function<std::vector<ops::RemoteColumn>(size_t)>& columns_of);
  /// The remote columns of vector v of a sample. message_of(owner) returns the start of the message from or to this
  /// owner, or null if the owner's vectors have no address on this rank.
  std::vector<ops::RemoteColumn> remote_columns(size_t v, const std::function<std::byte*(int32_t)>& message_of) const;
  void make_unique_exchange(Runtime&, int ring);
  UniqueExchange::Memory unique_memory() const { return {of_samples_->data(), of_owned_->data()}; }
  void wait_for_vectors(Context&);
  int64_t most_keys(const ops::OwnerKeys&) const;
  int64_t keys_of_bag(const ops::OwnedColumn&) const;
  size_t vector_bytes() const { return static_cast<size_t>(piece_dim_) * size_of(shape_.dtype); }
  int64_t owned() const { return static_cast<int64_t>(owned_slots_.size()); }
  Tensor samples_memory() const;
  Tensor owners_memory() const;
  /// vectors_of(rank): where owners_memory() has the vectors for the samples of `rank`. vectors_from(owner): where
  /// samples_memory() has the vectors that come from `owner`.
  std::byte* vectors_of(int rank) const;
  std::byte* vectors_from(int owner) const;
  std::byte* own_vectors() const { return vectors_of(comm_.rank()); }

  Communicator& comm_;
  Shape shape_;
  std::vector<ops::OwnedColumn> columns_;
  std::vector<ops::OwnerKeys> owners_;
  std::vector<int32_t> column_slots_, owned_slots_, first_of_slot_;
  std::vector<int32_t> owned_columns_;           // [owned column]: index of its vector in a sample, counted in pieces
  std::vector<std::vector<AtOwner>> at_owners_;  // [vector of a sample]: its columns, in owner order
  bool owners_are_alike_ = false;                // whether every owner has every column
  int64_t words_ = 0;                            // total words of all sent messages
  int64_t pieces_ = 1, piece_dim_ = 0;

  Arena arena_;
  std::vector<Batch> batches_;
  size_t received_ = 0, scratch_ = 0;
  DeviceLists lists_;
  ops::KeySplit key_split_;
  ops::OutputColumns columns_of_slots_;
  ops::SampleShards shards_;
  // of_samples_: the vectors of this rank's samples, from all owners. of_owned_: the vectors of this rank's rows, for
  // the samples of all ranks. A buffer is allocated only if needed. In each exchange one of the two is the receive
  // buffer. The other is the send buffer if ranks cannot write to each other's memory.
  std::optional<Buffer> of_samples_, of_owned_;
  std::optional<Buffer> sent_keys_;  // only if ranks cannot write to each other's memory
  // Null on several hosts. to_merge_ exchanges keys, to_samples_ exchanges vectors, to_owners_ exchanges gradients.
  std::unique_ptr<PeerExchange> to_merge_, to_samples_, to_owners_;
  std::unique_ptr<GradientBlocks> blocks_;  // null: kernels send all gradients
  std::unique_ptr<UniqueExchange> unique_;  // set on several hosts
  bool straight_ = false;                   // whether owners write directly to y
};

}  // namespace hctr
