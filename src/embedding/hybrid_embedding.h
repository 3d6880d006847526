// An embedding whose frequent rows are on every rank and whose other rows have owners.
#pragma once

#include <utility>

#include <memory>

#include "embedding/frequent_keys.h"
#include "embedding/gather_rows.h"
#include "embedding/replicated_rows.h"
#include "embedding/sharded_embedding.h"

namespace hctr {

/// Which keys are frequent is known from a file, or found: the owners count what comes in the first steps, and between two steps the rows that
/// came most often are put on every rank, with their states. From then on theirs are the rows that count: they take the places of their owners' in
/// files, so that these, and numbers of rows, are those of a table without frequent rows.
class HybridEmbedding : public Embedding {
 public:
  /// Errors: those of read_frequent_keys(); Error(data) when a key of the file is none that the table can have.
  HybridEmbedding(Runtime&, Communicator&, Placement, const TableSpec& spec, const std::vector<int64_t>& slot_keys, int ring_slots);

  void ensure_room(int64_t step) override;
  bool take_change() override { return std::exchange(changed_, false); }
  void prepare(Context&, int slot, Tensor keys, Tensor offsets) override;
  void send_vectors(Context& ctx, int slot) override { others_.send_vectors(ctx, slot); }
  void pool_own(Context&, int slot, Tensor y) override;
  void forward(Context& ctx, int slot, Tensor y) override { others_.add_forward(ctx, slot, y); }
  bool has_rows_everywhere() const override { return true; }
  void sum_gradients(Context& ctx, int slot, Tensor dy) override { frequent_.sum_gradients(ctx, slot, dy); }
  void share_sums(Context& ctx, int) override { frequent_.share_sums(ctx); }
  void send_gradients(Context& ctx, int slot, Tensor dy, ops::OverflowSearch search) override { others_.send_gradients(ctx, slot, dy, search); }
  void receive_gradients(Context& ctx, int slot, Tensor dy) override { others_.receive_gradients(ctx, slot, dy); }
  void update(Context&, int slot, Tensor dy) override;
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) override;
  const TableSpec& spec() const override { return others_.spec(); }
  int64_t rows() override;
  std::map<std::string, int64_t> counts() override { return others_.counts(); }
  void export_rows(bool with_states, const std::function<void(const RowBlock&)>& take) override;
  void import_rows(const RowBlock&) override;

  /// The rows of this rank's replica that have come, in the order of (slot, key).
  void export_replica(const std::function<void(const RowBlock&)>& take) { frequent_.export_rows(take); }

 protected:
  EmbeddingTable& table() override { return others_.table(); }

 private:
  HybridEmbedding(Runtime&, Communicator&, Placement, const TableSpec& spec, const std::vector<int64_t>& slot_keys, int ring_slots, FrequentKeys);
  /// The most frequent rows of all ranks become frequent ones, of those that come so often that it pays.
  void find_frequent();
  /// Occurrences in a batch of all ranks from which on less travels for a row that every rank has.
  int64_t least_occurrences() const;
  /// Frequent rows as they come in the order of (slot, key), on rank 0.
  RowCopies frequent_rows(bool with_states);

  Communicator& comm_;
  int64_t steps_left_;  // until frequent rows are found
  bool changed_ = false;
  int64_t most_rows_;   // of them
  bool have_owners_;    // frequent rows are also, as they were, in a table of others_
  ReplicatedRows frequent_;
  ShardedEmbedding others_;
};

}  // namespace hctr
