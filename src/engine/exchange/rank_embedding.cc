#include "engine/exchange/rank_embedding.h"
#include "engine/exchange/replicated_rows.h"
#include "engine/table/saved_rows.h"

#include "engine/exchange/hybrid_embedding.h"
#include "engine/exchange/mixed_embedding.h"
#include "engine/exchange/replicated_embedding.h"
#include "engine/exchange/sharded_embedding.h"

namespace hctr {
namespace {

/// An embedding on a single rank, where all calls go to the table.
class WholeEmbedding : public Embedding {
 public:
  WholeEmbedding(Runtime& runtime, const TableSpec& spec, int ring_size) : table_(runtime, spec, ring_size) {
    table_.sort_bits_in_use();
  }

  bool consume_rerecord_flag() override { return table_.consume_rerecord_flag(); }

  bool list_missing(Context& ctx, int buffer, Tensor keys, Tensor offsets) override {
    return table_.list_missing(ctx, buffer, keys, offsets);
  }
  void bring_rows(Context& ctx, int buffer, Tensor keys, Tensor offsets) override {
    table_.bring_rows(ctx, buffer, keys, offsets);
  }
  void prepare(Context& ctx, int buffer, Tensor keys, Tensor offsets) override {
    table_.prepare(ctx, buffer, keys, offsets);
  }
  void send_vectors(Context&, int) override {}
  void fill_local_vectors(Context&, int, Tensor) override {}
  void forward(Context& ctx, int buffer, Tensor y) override { table_.forward(ctx, buffer, y); }
  void send_gradients(Context& ctx, int, Tensor dy, ops::OverflowSearch search) override {
    ops::find_overflow(ctx, dy, search);
  }
  void receive_gradients(Context& ctx, int buffer, Tensor dy) override { table_.sum_long_runs(ctx, buffer, dy); }
  void update(Context& ctx, int buffer, Tensor dy) override { table_.update(ctx, buffer, dy); }
  void lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) override { table_.lookup(ctx, keys, offsets, y); }
  const TableSpec& spec() const override { return table_.spec(); }
  int64_t rows() override { return table_.rows(); }
  std::map<std::string, int64_t> counts() override { return table_.counts(); }
  void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) override {
    table_.export_rows(wanted, sink);
  }
  void import_rows(const RowBlock& rows) override { table_.import_rows(rows); }
  void reserve_import(int64_t rows) override { table_.reserve_import(rows); }

 protected:
  EmbeddingTable& table() override { return table_; }

 private:
  EmbeddingTable table_;
};

}  // namespace

void Embedding::look_ahead(std::span<const ops::RowOwner> keys) {
  if (!table().may_be_on_disk()) return;
  const auto pieces = static_cast<int32_t>(table().spec().pieces);
  std::vector<ops::RowOwner> owned;
  for (const ops::RowOwner& owner : keys)
    for (int32_t slot = owner.slot * pieces; slot < (owner.slot + 1) * pieces; ++slot)
      if (owns(owner.key, slot)) owned.push_back({owner.key, slot});
  table().look_ahead(owned);
}

std::unique_ptr<Embedding> make_embedding(Runtime& runtime, Communicator& comm, Placement placement,
                                          const TableSpec& spec, int ring_size, const EmbeddingOutputs& outputs) {
  if (comm.size() == 1) return std::make_unique<WholeEmbedding>(runtime, spec, ring_size);
  if (spec.replication.of == Replication::Of::all)
    return std::make_unique<ReplicatedEmbedding>(runtime, comm, spec, ring_size);
  if (spec.replication.of == Replication::Of::frequent)
    return std::make_unique<HybridEmbedding>(runtime, comm, std::move(placement), spec, ring_size, outputs);
  if (placement.some_replicated())
    return std::make_unique<MixedEmbedding>(runtime, comm, placement, spec, ring_size, outputs);
  return std::make_unique<ShardedEmbedding>(runtime, comm, ShardedRows{std::move(placement), spec}, ring_size, outputs);
}

void Embedding::load_by_key(const StateReader& from) {
  std::vector<StateReader> owners;
  for (int r = 0; r < from.ranks(); ++r)
    if (const StateReader table = from.of_rank(r).in(kOwnState); table.has("rows")) owners.push_back(table);
  const StateReader replicated = from.of_rank(0).in(kReplicatedState);
  SavedRows rows(spec(), [this](const RowBlock& block) { import_rows(block); });
  for (const StateReader& table : owners) rows.read(table);
  // Import replicated rows last, because the owners' copies are outdated.
  if (replicated.has("rows")) rows.read(replicated, ReplicatedRows::saved_seen(replicated));
  rows.finish();
  table().load_state_by_key(owners.empty() ? std::vector{replicated} : owners, from.rank(),
                            [this](int64_t key, int32_t slot) { return owns(key, slot); });
}

}  // namespace hctr
