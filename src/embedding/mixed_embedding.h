// An embedding of which every rank has the rows of some slots, small ones, while the others have owners.
#pragma once

#include "embedding/replicated_rows.h"
#include "embedding/sharded_embedding.h"

namespace hctr {

/// Two tables side by side, which fill and read different places of the vectors: nothing of the first one's slots is exchanged.
class MixedEmbedding : public Embedding {
 public:
  /// `spec` has direct keys, by slot.
  MixedEmbedding(Runtime&, Communicator&, Placement, TableSpec spec, const std::vector<int64_t>& slot_keys, int ring_slots);

  void ensure_room(int64_t step) override;
  void check_keys() override;
  void prepare(Context&, int slot, Tensor keys, Tensor offsets) override;
  void send_vectors(Context& ctx, int slot) override { others_.send_vectors(ctx, slot); }
  void pool_own(Context&, int slot, Tensor y) override;
  void forward(Context& ctx, int slot, Tensor y) override { others_.add_forward(ctx, slot, y); }
  bool has_rows_everywhere() const override { return true; }
  void sum_gradients(Context& ctx, int slot, Tensor dy) override { everywhere_.sum_gradients(ctx, slot, dy); }
  void share_sums(Context& ctx, int) override { everywhere_.share_sums(ctx); }
  void send_gradients(Context& ctx, int slot, Tensor dy, ops::OverflowSearch search) override { others_.send_gradients(ctx, slot, dy, search); }
  void receive_gradients(Context& ctx, int slot, Tensor dy) override { others_.receive_gradients(ctx, slot, dy); }
  void update(Context&, int slot, Tensor dy) override;
  void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) override;
  const TableSpec& spec() const override { return others_.spec(); }
  int64_t rows() override { return others_.rows() + everywhere_.table().rows(); }
  std::map<std::string, int64_t> counts() override { return others_.counts(); }
  void export_rows(bool with_states, const std::function<void(const RowBlock&)>& take) override;
  void import_rows(const RowBlock&) override;

  /// The rows of this rank's replica, in the order of (slot, key).
  void export_replica(const std::function<void(const RowBlock&)>& take) { everywhere_.table().export_rows(true, take); }

 protected:
  EmbeddingTable& table() override { return others_.table(); }

 private:
  Communicator& comm_;
  std::vector<bool> on_every_rank_;  // [slots]
  ReplicatedRows everywhere_;
  ShardedEmbedding others_;
};

}  // namespace hctr
