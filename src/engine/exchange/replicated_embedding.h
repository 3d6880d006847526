// A table that is replicated on every rank. For small tables this costs less than exchanging vectors.
#pragma once

#include "engine/exchange/rank_embedding.h"
#include "engine/exchange/replicated_rows.h"

namespace hctr {

class ReplicatedEmbedding : public Embedding {
 public:
  /// `spec` must have direct keys, and these must include the keys of all ranks.
  ReplicatedEmbedding(Runtime& runtime, Communicator& comm, const TableSpec& spec, int ring_size)
      : comm_(comm), rows_(runtime, comm, spec, ring_size) {}

  void prepare(Context& ctx, int buffer, Tensor keys, Tensor offsets) override {
    rows_.prepare(ctx, buffer, keys, offsets);
  }
  void send_vectors(Context&, int) override {}
  void fill_local_vectors(Context&, int, Tensor) override {}
  void forward(Context& ctx, int buffer, Tensor y) override { rows_.forward(ctx, buffer, y); }
  bool has_replicated_rows() const override { return true; }
  void sum_gradients(Context& ctx, int buffer, Tensor dy) override { rows_.sum_gradients(ctx, buffer, dy); }
  void send_gradients(Context& ctx, int, Tensor dy, ops::OverflowSearch search) override {
    ops::find_overflow(ctx, dy, search);
  }
  void receive_gradients(Context&, int, Tensor) override {}
  void update(Context& ctx, int buffer, Tensor) override { rows_.update(ctx, buffer); }
  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) override { rows_.lookup(ctx, keys, offsets, y); }
  const TableSpec& spec() const override { return rows_.spec(); }
  int64_t rows() override { return table().rows(); }
  std::map<std::string, int64_t> counts() override { return table().counts(); }
  void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) override {
    if (comm_.rank() == 0) table().export_rows(wanted, sink);
  }
  std::vector<SlotKey> removed_keys() override { return {}; }
  void import_rows(const RowBlock& rows) override { table().import_rows(rows); }
  void save_state(StateWriter to) override {
    if (to.rank() == 0) rows_.save_state(to.in(kReplicatedState));
  }

  EmbeddingTable& table() override { return rows_.table(); }

 protected:
  void load_exactly(const StateReader& from) override { rows_.load_state(from.of_rank(0).in(kReplicatedState)); }

 private:
  Communicator& comm_;
  ReplicatedRows rows_;
};

}  // namespace hctr
