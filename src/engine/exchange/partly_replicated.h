// An embedding of two tables: a replicated table, and a table whose rows have owner ranks.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/exchange/replicated_rows.h"
#include "engine/exchange/sharded_embedding.h"

namespace hctr {

/// Runs a step of both tables. Replicated rows are pooled, and their gradients are summed, while the other rows are
/// exchanged. Derived classes decide which keys are replicated, look up these keys in send_keys(), and define how both
/// tables are saved.
class PartlyReplicated : public Embedding {
 public:
  void gather_keys(Context& ctx, Recording* recording, int buffer) override {
    others_.gather_keys(ctx, recording, buffer);
  }
  void receive_keys(Context& ctx, Recording* recording, int buffer) override {
    others_.receive_keys(ctx, recording, buffer);
  }
  bool list_missing(Context& ctx, int buffer, Tensor keys, Tensor offsets) override {
    return others_.list_missing(ctx, buffer, keys, offsets);
  }
  void bring_rows(Context& ctx, int buffer, Tensor keys, Tensor offsets) override {
    others_.bring_rows(ctx, buffer, keys, offsets);
  }
  void prepare(Context& ctx, int buffer, Tensor keys, Tensor offsets) override {
    others_.prepare(ctx, buffer, keys, offsets);
  }
  void send_vectors(Context& ctx, int buffer) override { others_.send_vectors(ctx, buffer); }
  void fill_local_vectors(Context& ctx, int buffer, Tensor y) override {
    replicated_.forward(ctx, buffer, y, others_.writers(buffer));
  }
  void forward(Context& ctx, int buffer, Tensor y) override { others_.add_forward(ctx, buffer, y); }
  bool has_replicated_rows() const override { return true; }
  void sum_gradients(Context& ctx, int buffer, Tensor dy) override { replicated_.sum_gradients(ctx, buffer, dy); }
  void expect_gradients(Context& ctx) override { others_.expect_gradients(ctx); }
  void send_gradients(Context& ctx, int buffer, Tensor dy, ops::OverflowSearch search) override {
    others_.send_gradients(ctx, buffer, dy, search);
  }
  bool sends_gradients_by_engines() const override { return others_.sends_gradients_by_engines(); }
  void receive_gradients(Context& ctx, int buffer, Tensor dy) override { others_.receive_gradients(ctx, buffer, dy); }
  void update(Context& ctx, int buffer, Tensor dy) override {
    others_.update(ctx, buffer, dy);
    replicated_.update(ctx, buffer);
  }
  void freeze(bool frozen) override {
    others_.freeze(frozen);
    replicated_.table().freeze(frozen);
  }
  bool fixed_sizes() const override { return others_.fixed_sizes(); }
  BytesBetweenHosts bytes_between_hosts() const override { return others_.bytes_between_hosts(); }
  const TableSpec& spec() const override { return others_.spec(); }
  std::vector<uint8_t> have_rows(std::span<const SlotKey> keys) override {
    std::vector<uint8_t> found = others_.have_rows(keys);
    const std::vector<uint8_t> here = replicated_.have_rows(keys);
    for (size_t i = 0; i < found.size(); ++i) found[i] |= here[i];
    return found;
  }
  std::map<std::string, int64_t> counts() override { return others_.counts(); }
  int64_t bytes_to_export(bool with_states, int ranks) override {
    // While rank 0 writes the rows of `others_`, rank 0 also holds the replicated rows in memory.
    return others_.bytes_to_export(with_states, ranks) + replicated_.table().bytes_to_export(with_states, 1) +
           2 * replicated_.table().bytes_of_rows(with_states);
  }
  HostRows host_rows() override { return replicated_.table().host_rows() + others_.host_rows(); }
  DeviceBytes device_bytes() override { return replicated_.table().device_bytes() + others_.device_bytes(); }
  void note_model() override {
    replicated_.table().note_model();
    others_.note_model();
  }
  std::vector<SlotKey> removed_keys() override {
    std::vector<SlotKey> removed = others_.removed_keys();
    // Do not list replicated rows as removed. A replicated row still exists after its owner has removed the outdated
    // copy.
    std::erase_if(removed, [&](const SlotKey& of) { return replicated_.has(of.second, of.first); });
    return removed;
  }
  void save_state(StateWriter to) override {
    others_.save_state(to);
    if (to.rank() == 0) replicated_.save_state(to.in(kReplicatedState));
  }
  bool owns(int64_t key, int32_t slot) const override { return others_.owns(key, slot); }

 protected:
  void load_exactly(const StateReader& from) override {
    others_.load_state(from);
    replicated_.load_state(from.of_rank(0).in(kReplicatedState));
  }
  PartlyReplicated(Runtime& runtime, Communicator& comm, const TableSpec& replicated, ShardedRows others, int ring_size,
                   const EmbeddingOutputs& outputs)
      : comm_(comm),
        replicated_(runtime, comm, replicated, ring_size),
        others_(runtime, comm, std::move(others), ring_size, outputs) {}
  EmbeddingTable& table() override { return others_.table(); }

  Communicator& comm_;
  ReplicatedRows replicated_;
  ShardedEmbedding others_;
};

}  // namespace hctr
