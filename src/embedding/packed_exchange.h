// How keys, vectors and gradients travel where ranks are on several hosts: counts first, then packed data of their real
// size. See docs/distributed.md.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "device/arena.h"
#include "ops/embedding/listed_vectors.h"
#include "ops/embedding/row_memory.h"
#include "ops/embedding/wire_keys.h"

namespace hctr {

/// Bytes that a rank has sent to ranks of other hosts.
struct BytesBetweenHosts {
  int64_t sent = 0;
  int64_t of_full_size = 0;  ///< what would have been sent if every message had its largest size

  BytesBetweenHosts& operator+=(const BytesBetweenHosts& other) {
    sent += other.sent;
    of_full_size += other.of_full_size;
    return *this;
  }
};

/// The rows of the keys that an owner has received.
struct OwnedRows {
  ops::KeyBatch batch;
  const int32_t* rows = nullptr;  ///< of each key; 0 for none
  ops::RowMemory table;
};

/// The transport of an Exchange. It waits on the host for the counts of keys, so no call can be recorded. Calls are
/// collective, in the order send_keys, then of the same batch send_vectors, receive_vectors, send_gradients,
/// receive_gradients.
class PackedExchange {
 public:
  struct Layout {
    ops::KeySplit split;                 ///< of this rank's batches
    std::vector<ops::OwnerKeys> owners;  ///< [ranks] the messages of a full-size exchange
    std::vector<int64_t> most_keys;      ///< [ranks] of each
    std::vector<int32_t> keys_of_bag;    ///< [split.count] most keys of a bag of each column
    int64_t samples = 0;                 ///< of a rank
    int64_t key_capacity = 0;            ///< keys that this rank sends to all owners together
    int64_t owned_columns = 0;           ///< of this rank as owner
    int64_t owned_key_capacity = 0;      ///< keys that it receives from all ranks together
    int64_t dim = 0;                     ///< of a vector
    DType dtype = DType::f32;            ///< of vectors and gradients in the exchange
    DType storage = DType::f32;          ///< of rows

    int64_t vector_bytes() const { return dim * static_cast<int64_t>(size_of(dtype)); }
  };
  /// Where the vectors are: of samples, by owner as `present` is; of owned rows, [ranks * samples, owned_columns]. The
  /// vectors of this rank's own rows for its own samples stay in the second and are not sent.
  struct Memory {
    std::byte *of_samples = nullptr, *of_owned = nullptr;
  };
  PackedExchange(Runtime&, Communicator&, const Layout&, int ring);
  virtual ~PackedExchange() = default;

  /// Synchronizes the stream. Shapes: those of ops::merge_packed_keys. `local_rows`: of ops::KeySplit.
  void send_keys(Context&, int buffer, const ops::KeyBatch& batch, const int32_t* local_rows, uint8_t* present,
                 Tensor owned_offsets, Tensor owned_keys);
  /// Whether send_vectors() reads the pooled vectors of the samples of this rank from Memory::of_owned.
  virtual bool sends_pooled(int /*rank*/) const { return true; }
  void send_vectors(Context&, int buffer, const Memory&, const OwnedRows&);
  virtual void receive_vectors(Context&, int buffer, const Memory&);
  void send_gradients(Context&, int buffer, const Memory&);
  void receive_gradients(Context&, int buffer, const Memory&);

  BytesBetweenHosts bytes() const { return bytes_; }

 protected:
  struct Batch {
    size_t requested, owned;            // tickets: lists of vectors
    HostBuffer counts, first;           // sent and received counts; where each rank's keys begin
    RankRanges requested_of, owned_of;  // vectors by rank, in the order of the lists
  };
  /// Brings what pack_keys has packed to the owners: fills the received keys and `first`, the ranges of the batch.
  virtual void carry_keys(Context&, Batch&);
  /// Brings the owners' vectors to the ranks of the samples, where receive_vectors() puts them in their places.
  virtual void carry_vectors(Context&, Batch&, const Memory&, const OwnedRows&);
  void all_to_all(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive);
  /// The ranges of ranks that have so many elements each, one behind the other. Counts are 2 apart.
  static RankRanges consecutive(const int32_t* counts, int ranks);
  int32_t* list(size_t ticket) const { return arena_.get(ticket).data<int32_t>(); }

  Communicator& comm_;
  Layout layout_;
  Arena arena_;
  std::vector<Batch> batches_;
  // Tickets. Packed vectors of this rank's samples and of its rows: one is sent while the other is received.
  size_t sent_keys_, sent_bags_, received_keys_, received_bags_, counts_, received_counts_, first_, scratch_,
      of_samples_, of_owned_;

 private:
  /// Copies the listed vectors to packed memory or from there, but for those of this rank's own rows and samples.
  void copy(Context&, const RankRanges&, ops::ListedVectors, std::byte* packed, bool pack);
  /// Sends packed vectors from `in` to `out`.
  void send(Context&, size_t in, const RankRanges& send, size_t out, const RankRanges& receive);

  BytesBetweenHosts bytes_;
  int64_t full_keys_ = 0, full_vectors_ = 0, full_gradients_ = 0;  // bytes to other hosts of a full-size exchange
};

}  // namespace hctr
