// One table of an EmbeddingSet on several ranks. Each rank sends the keys of its samples to the owner ranks of their
// rows. The owners return the vectors. Each rank then sends the gradients to the owners.
//
//   rank of the samples                          rank of the rows
//   keys, lengths of bags ── all-to-all ──────>  keys of all samples, as one batch of the table
//   pooled vectors  <────── all-to-all ────────  a vector for each key
//   a gradient for each key ── all-to-all ────>  sums by row, in the order of that batch
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/comm/communicator.h"
#include "core/device/copy_bytes.h"
#include "engine/set/set_input.h"
#include "engine/set/set_placement.h"
#include "engine/table/table.h"
#include "ops/embedding/owner_split.h"

namespace hctr {

/// The part of a batch that one rank sends to this rank: its number of samples, and the key range of each feature.
struct KeysFromRank {
  int64_t samples = 0;
  std::vector<int64_t> begins;  // [features + 1]

  int64_t of_feature(size_t f) const { return begins[f + 1] - begins[f]; }
  int64_t all() const { return begins.back() - begins.front(); }
};

/// Call for each buffer in this order: reserve_own(), split(), list_counts(), take_counts(), reserve_received(),
/// add_key_exchanges(), join_batch(), prepare() except for lookups, read_vectors(), add_vector_exchanges(),
/// write_vectors(). For an update: write_gradients(), add_gradient_exchange(), then update() or list_row_gradients().
/// The caller runs the added exchanges of all tables together. The last buffer is for lookups.
class SharedTable {
 public:
  /// `spec` describes the rows of this rank.
  SharedTable(Runtime&, Communicator&, const TableSpec& spec, std::vector<TableFeature>, TablePlace, int batches);

  /// Null if this rank has no row of the table.
  EmbeddingTable* table() const { return table_.get(); }
  const TableSpec& spec() const { return spec_; }
  const TableFeatures& features() const { return features_; }
  const TablePlace& place() const { return place_; }
  bool looks_up(int buffer) const { return buffer + 1 == static_cast<int>(batches_.size()); }

  /// Reserves memory for the keys of this rank's samples. Runs on the host. Errors: Error(device).
  void reserve_own(int buffer, int64_t samples, int64_t keys);
  void split(Context&, int buffer, int64_t samples, std::span<const ops::FeatureBags>);
  /// The number of counts that list_counts() writes per rank: features + 1. The counts for rank r begin at counts[r *
  /// width + first].
  int64_t count_numbers() const { return features_.count() + 1; }
  void list_counts(Context&, int buffer, int32_t* counts, int64_t width, int64_t first);
  void take_counts(int buffer, std::vector<KeysFromRank> sent, std::vector<KeysFromRank> received);
  int64_t keys_received(int buffer) const { return batch(buffer).received_keys; }
  /// The number of samples on all ranks, even if this rank has no row of the table.
  int64_t samples_of_all(int buffer) const { return batch(buffer).received_samples; }
  /// Reserves memory for the received keys. Runs on the host. Errors: Error(usage) naming most_keys; Error(device).
  void reserve_received(int buffer, int64_t most_keys);
  void add_key_exchanges(int buffer, std::vector<AllToAll>&);
  /// Reorders the received keys by feature, like the keys of a batch on one rank.
  void join_batch(Context&, int buffer);
  void prepare(Context&, int buffer);
  /// Calls EmbeddingTable::confirm_capacity() and enforce_limit(). Runs on the host.
  void confirm(int buffer);
  /// Copies the vectors of the received keys to the send buffer. For the lookup buffer, first finds the rows of these
  /// keys.
  void read_vectors(Context&, int buffer);
  void add_vector_exchanges(int buffer, std::vector<AllToAll>&);
  void write_vectors(Context&, int buffer, std::span<const PlacedVectors> outputs);
  void weight_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients, std::span<float* const> dw);
  /// Writes the gradients of this rank's keys to the send buffer.
  void write_gradients(Context&, int buffer, std::span<const PlacedVectors> gradients);
  void add_gradient_exchange(int buffer, std::vector<AllToAll>&);
  void update(Context&, int buffer);
  /// Like SetTable::list_row_gradients(). A step that calls this function must end with update() or release().
  void list_row_gradients(Context&, int buffer, const RowGradients&);
  /// The number of distinct rows of the batch on this rank. Runs on the host and waits.
  int64_t rows_of_batch(int buffer);
  void release(Context&, int buffer);

 private:
  /// The keys of this rank's samples on the device, ordered by receiving rank.
  struct Own {
    int64_t samples = 0, keys = 0;  // capacity
    Arena arena{};
    ops::OwnerSplit split{};
    float* vectors = nullptr;    // [1 + keys, dim]: the vector of each sent key; the first vector is 0
    float* gradients = nullptr;  // [keys, dim]: the gradient of each sent key
    int32_t* rows = nullptr;     // [keys]: row of each sent key at its owner; only if a feature has max pooling
    int32_t* found = nullptr;    // [keys]: the index of each key's vector in `vectors`; 0: no vector
  };
  /// The received keys in two orders: by sending rank; and as a batch, which is ordered by feature, then by rank.
  struct Received {
    int64_t bags = 0, keys = 0;
    Arena arena{};
    int32_t *lengths_by_rank = nullptr, *lengths = nullptr, *offsets = nullptr;  // [bags + 1]
    int64_t *keys_by_rank = nullptr, *of_keys = nullptr;                         // [keys]
    int32_t* in_order = nullptr;                                                 // [keys]: 0, 1, 2, ...
    int32_t* numbers = nullptr;       // [keys]: for each key of the batch, its index in the order by rank
    int32_t* rows_by_rank = nullptr;  // [keys]
    float* vectors = nullptr;         // [keys, dim], ordered by rank: first vectors, later gradients
    std::byte* scratch = nullptr;
  };
  struct Batch {
    SetInput input{};
    Own own{};
    Received received{};
    std::vector<KeysFromRank> sent{}, from{};  // [rank]
    int64_t received_keys = 0, received_samples = 0;
    const int32_t* rows = nullptr;  // the row number of each received key
  };
  Batch& batch(int buffer) { return batches_.at(static_cast<size_t>(buffer)); }
  const Batch& batch(int buffer) const { return batches_.at(static_cast<size_t>(buffer)); }
  bool sends_to(int rank) const { return place_.on(rank); }
  int64_t bags(const Batch& of) const { return features_.count() * of.input.batch_samples; }
  int64_t received_bags(const Batch& of) const { return features_.count() * of.received_samples; }
  /// The keys and bags of one feature from one rank: their numbers, and the indices of the first key and of the first
  /// bag. Each index is given in the order by rank and in the batch.
  struct Piece {
    int64_t by_rank, in_batch, keys, bag_by_rank, bag_in_batch, bags;
  };
  std::vector<Piece> pieces_of(const Batch&) const;
  template <class T>
  static void copy_elements(Context& ctx, const T* from, T* to, int64_t count) {
    if (count > 0) copy_bytes(ctx.stream(), to, from, static_cast<size_t>(count) * sizeof(T));
  }
  int64_t keys_sent(const Batch&) const;
  RankRanges sent_ranges(const Batch&, int64_t width, int64_t first) const;
  RankRanges received_ranges(const Batch&, int64_t width) const;
  void reserve_arrays(Received&, int64_t bags, int64_t keys);
  Tensor keys_of(const Batch&) const;
  Tensor offsets_of(const Batch&) const;
  Tensor list(DType, void* data, int64_t count) const;
  /// Vectors of this rank's keys: `memory` has the vectors, and rows[i] is the index of key i's vector in `memory`.
  struct OwnRows {
    ops::RowMemory memory;
    const int32_t* rows;
  };
  OwnRows own_rows(const Batch&, size_t feature, const int32_t* rows) const;
  void pool(Context&, Batch&, std::span<const PlacedVectors> outputs);
  /// The gradients of the received keys, as the table needs them.
  Tensor received_gradients(const Batch&) const;
  const int32_t* rows_of(int buffer) const { return table_ ? table_->prepared(buffer).rows : nullptr; }

  Runtime& runtime_;
  Communicator& comm_;
  TableSpec spec_;
  TableFeatures features_;
  TablePlace place_;
  ops::Combiner combiner_;
  std::unique_ptr<EmbeddingTable> table_;
  std::vector<Batch> batches_;
};

}  // namespace hctr
