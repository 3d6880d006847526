#include "embedding/sharded_embedding.h"

#include "embedding/derived_specs.h"
#include "embedding/gather_rows.h"

namespace hctr {
namespace {

Exchange::Shape training(const TableSpec& spec, AlsoInVectors also, const EmbeddingOutputs& outputs) {
  return {.slot_keys = spec.slot_keys,
          .samples = spec.samples,
          .key_capacity = spec.key_capacity,
          .dim = spec.dim,
          .combiner = spec.combiner,
          .dtype = spec.exchange,
          .also = also,
          .y = outputs.training};
}

Exchange::Shape evaluation(const TableSpec& spec, AlsoInVectors also, const EmbeddingOutputs& outputs) {
  Exchange::Shape shape = training(spec, also, outputs);
  shape.samples = spec.eval_samples;
  shape.key_capacity = spec.eval_key_capacity;
  shape.gradients = false;
  shape.y = outputs.evaluation;
  return shape;
}

TableSpec owned(const TableSpec& spec, const Placement& placement, const Exchange& train, const Exchange& evaluation) {
  return owner_spec(spec, placement,
                    {.slots = train.owned_slots(),
                     .samples = train.owned_samples(),
                     .key_capacity = train.owned_key_capacity(),
                     .eval_samples = evaluation.owned_samples(),
                     .eval_key_capacity = evaluation.owned_key_capacity()});
}

}  // namespace

ShardedEmbedding::ShardedEmbedding(Runtime& runtime, Communicator& comm, Placement placement, const TableSpec& spec,
                                   int ring_slots, const EmbeddingOutputs& outputs, AlsoInVectors also)
    : comm_(comm),
      placement_(std::move(placement)),
      spec_(spec),
      train_(runtime, comm, placement_, training(spec_, also, outputs), ring_slots),
      evaluation_(runtime, comm, placement_, evaluation(spec_, also, outputs), 1),
      table_(runtime, owned(spec_, placement_, train_, evaluation_), ring_slots) {}

void ShardedEmbedding::prepare(Context& ctx, int slot, Tensor keys, Tensor offsets, const int32_t* local_rows) {
  train_.send_keys(ctx, slot, keys, offsets, local_rows);
  table_.prepare(ctx, slot, train_.owned_keys(slot), train_.owned_offsets(slot));
}

void ShardedEmbedding::send_vectors(Context& ctx, int slot) {
  train_.send_vectors(ctx, [&](const ops::SampleParts& parts) { table_.pool(ctx, table_.prepared(slot), parts); });
}

void ShardedEmbedding::receive_gradients(Context& ctx, int slot, Tensor) {
  train_.receive_gradients(ctx);
  table_.sum_long_runs(ctx, slot, train_.owned_gradients());
}

void ShardedEmbedding::ask_owners(Context& ctx, Tensor keys, Tensor offsets, const int32_t* local_rows) {
  evaluation_.send_keys(ctx, 0, keys, offsets, local_rows);
  const EmbeddingTable::Batch batch = table_.find(ctx, evaluation_.owned_keys(0), evaluation_.owned_offsets(0));
  evaluation_.send_vectors(ctx, [&](const ops::SampleParts& parts) { table_.pool(ctx, batch, parts); });
}

void ShardedEmbedding::lookup(Context& ctx, Tensor keys, Tensor offsets, Tensor y) {
  ask_owners(ctx, keys, offsets);
  evaluation_.clear_unowned(ctx, 0, y);
  evaluation_.receive_vectors(ctx, 0, y);
}

int64_t ShardedEmbedding::over_all_ranks(int64_t mine) {
  int64_t all = 0;
  for (const std::string& part : comm_.gather(std::to_string(mine), 0)) all += std::stoll(part);
  return std::stoll(comm_.broadcast(std::to_string(all), 0));
}

bool ShardedEmbedding::uses_shared_row() {
  return spec().policy.shares_row() && over_all_ranks(table_.uses_shared_row()) > 0;
}

int64_t ShardedEmbedding::rows() { return over_all_ranks(table_.rows()) / placement_.pieces; }

std::map<std::string, int64_t> ShardedEmbedding::counts() {
  std::map<std::string, int64_t> counts = table_.counts();  // the same names on every rank
  for (auto& [name, count] : counts) count = over_all_ranks(count);
  return counts;
}

void ShardedEmbedding::export_rows(bool with_states, const std::function<void(const RowBlock&)>& take) {
  PieceJoining joining(table_.spec(), take);
  const std::function<void(const RowBlock&)> join = [&](const RowBlock& block) { joining.give(block); };
  RowGathering gathering(comm_, table_.spec(), placement_.pieces > 1 ? join : take);
  table_.export_rows(with_states, [&](const RowBlock& block) { gathering.give(block); });
  gathering.finish();
}

void ShardedEmbedding::import_rows(const RowBlock& rows) { import_owned_rows(placement_, comm_.rank(), rows, table_); }

}  // namespace hctr
