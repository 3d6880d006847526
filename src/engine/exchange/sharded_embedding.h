// An embedding whose rows are sharded over the ranks: a table of this rank's rows, and the exchange with other ranks.
#pragma once

#include "engine/exchange/exchange.h"
#include "engine/exchange/rank_embedding.h"

namespace hctr {

/// An embedding and the placement of its rows.
struct ShardedRows {
  Placement placement;
  TableSpec spec;
  ReplicatedPart replicated = ReplicatedPart::nothing;  ///< the part of the embedding that is replicated
};

class ShardedEmbedding : public Embedding {
 public:
  /// If a part is replicated, call add_forward() and add_lookup() instead of forward() and lookup().
  ShardedEmbedding(Runtime&, Communicator&, ShardedRows, int ring_size, const EmbeddingOutputs&);

  void send_keys(Context& ctx, Recording* recording, int buffer, Tensor keys, Tensor offsets) override {
    send_keys(ctx, recording, buffer, keys, offsets, nullptr);
  }
  void gather_keys(Context& ctx, Recording* recording, int buffer) override {
    train_.gather_keys(ctx, recording, buffer);
  }
  void receive_keys(Context& ctx, Recording* recording, int buffer) override {
    train_.receive_keys(ctx, recording, buffer);
  }
  bool exchanges_by_kernels() const override { return train_.exchanges_by_kernels(); }
  bool consume_look_up_flag() override { return table_.consume_rerecord_flag(); }
  bool list_missing(Context&, int buffer, Tensor keys, Tensor offsets) override;
  void bring_rows(Context&, int buffer, Tensor keys, Tensor offsets) override;
  void prepare(Context&, int buffer, Tensor keys, Tensor offsets) override;
  void send_vectors(Context&, int buffer) override;
  void fill_local_vectors(Context& ctx, int buffer, Tensor y) override { train_.clear_unowned(ctx, buffer, y); }
  void forward(Context& ctx, int buffer, Tensor y) override { train_.receive_vectors(ctx, buffer, y); }
  void expect_gradients(Context& ctx) override { train_.expect_gradients(ctx); }
  void send_gradients(Context& ctx, int buffer, Tensor dy, ops::OverflowSearch search) override {
    train_.send_gradients(ctx, buffer, dy, search);
  }
  bool sends_gradients_by_engines() const override { return train_.sends_gradients_by_engines(); }
  void receive_gradients(Context&, int buffer, Tensor dy) override;
  void update(Context& ctx, int buffer, Tensor) override { table_.update(ctx, buffer, train_.owned_gradients()); }
  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) override;
  // These calls are for an embedding with replicated rows. They skip keys that have a row in `local_rows` (see
  // Exchange::send_keys). They add the vectors of the other keys to `y`, which already contains the replicated vectors.
  void send_keys(Context& ctx, Recording* recording, int buffer, Tensor keys, Tensor offsets,
                 const int32_t* local_rows) {
    train_.send_keys(ctx, recording, buffer, keys, offsets, local_rows);
  }
  void add_forward(Context& ctx, int buffer, Tensor y) { train_.add_received_vectors(ctx, buffer, y); }
  void add_lookup(Context& ctx, Tensor y) { evaluation_.add_received_vectors(ctx, 0, y); }
  /// Sends the keys of an evaluation batch to their owners. The owners send the vectors back. Call before add_lookup().
  void ask_owners(Context&, Tensor keys, Tensor offsets, const int32_t* local_rows = nullptr);
  /// See Exchange::writers().
  const ops::OwnerVectors* writers(int buffer) const { return train_.writers(buffer); }
  const ops::OwnerVectors* lookup_writers() const { return evaluation_.writers(0); }
  bool fixed_sizes() const override { return train_.fixed_sizes(); }
  BytesBetweenHosts bytes_between_hosts() const override {
    BytesBetweenHosts bytes = train_.bytes_between_hosts();
    return bytes += evaluation_.bytes_between_hosts();
  }
  const TableSpec& spec() const override { return spec_; }
  int64_t rows() override;
  std::map<std::string, int64_t> counts() override;
  bool uses_shared_row() override;
  void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) override;
  std::vector<SlotKey> removed_keys() override;
  void import_rows(const RowBlock&) override;
  bool owns(int64_t key, int32_t slot) const override { return placement_.owner(slot, key) == comm_.rank(); }
  EmbeddingTable& table() override { return table_; }

 private:
  OwnedRows rows_of(const EmbeddingTable::Batch&) const;
  int64_t over_all_ranks(int64_t mine);

  Communicator& comm_;
  Placement placement_;
  const TableSpec spec_;
  Exchange train_, evaluation_;
  EmbeddingTable table_;
};

}  // namespace hctr
