#include "engine/exchange/sharded_embedding.h"

#include <algorithm>

#include "config/json.h"
#include "core/comm/collective_error.h"
#include "engine/spec/derived_specs.h"
#include "engine/table/gather_rows.h"

namespace hctr {
namespace {

Exchange::Shape training(const TableSpec& spec, ReplicatedPart replicated, const EmbeddingOutputs& outputs,
                         Device device) {
  return {.slot_keys = spec.slot_keys,
          .samples = spec.samples,
          .key_capacity = spec.key_capacity,
          .dim = spec.dim,
          .combiner = spec.combiner,
          .dtype = spec.exchange,
          .storage = spec.storage,
          .sums_in_hosts = spec.sums_in_hosts.value_or(device.is_cuda()),
          .replicated = replicated,
          .y = outputs.training};
}

Exchange::Shape evaluation(const TableSpec& spec, ReplicatedPart replicated, const EmbeddingOutputs& outputs,
                           Device device) {
  Exchange::Shape shape = training(spec, replicated, outputs, device);
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

ShardedEmbedding::ShardedEmbedding(Runtime& runtime, Communicator& comm, ShardedRows rows, int ring_size,
                                   const EmbeddingOutputs& outputs)
    : comm_(comm),
      placement_(std::move(rows.placement)),
      spec_(std::move(rows.spec)),
      train_(runtime, comm, placement_, training(spec_, rows.replicated, outputs, runtime.device()), ring_size),
      evaluation_(runtime, comm, placement_, evaluation(spec_, rows.replicated, outputs, runtime.device()), 1),
      table_(runtime, owned(spec_, placement_, train_, evaluation_), ring_size) {
  if (rows.replicated == ReplicatedPart::nothing && exchanges_by_kernels()) table_.sort_bits_in_use();
}

bool ShardedEmbedding::list_missing(Context& ctx, int buffer, Tensor, Tensor) {
  return table_.list_missing(ctx, buffer, train_.owned_keys(buffer), train_.owned_offsets(buffer));
}

void ShardedEmbedding::bring_rows(Context& ctx, int buffer, Tensor, Tensor) {
  table_.bring_rows(ctx, buffer, train_.owned_keys(buffer), train_.owned_offsets(buffer));
}

void ShardedEmbedding::prepare(Context& ctx, int buffer, Tensor, Tensor) {
  table_.prepare(ctx, buffer, train_.owned_keys(buffer), train_.owned_offsets(buffer), train_.key_gradients(buffer));
}

OwnedRows ShardedEmbedding::rows_of(const EmbeddingTable::Batch& batch) const {
  return {batch.rows, table_.data().vectors};
}

void ShardedEmbedding::send_vectors(Context& ctx, int buffer) {
  const EmbeddingTable::Batch& batch = table_.prepared(buffer);
  train_.send_vectors(ctx, buffer, rows_of(batch),
                      [&](const ops::SampleShards& shards) { table_.pool(ctx, batch, shards); });
}

void ShardedEmbedding::receive_gradients(Context& ctx, int buffer, Tensor) {
  train_.receive_gradients(ctx, buffer);
  table_.sum_long_runs(ctx, buffer, train_.owned_gradients());
}

void ShardedEmbedding::ask_owners(Context& ctx, Tensor keys, Tensor offsets, const int32_t* local_rows) {
  evaluation_.send_keys(ctx, nullptr, 0, keys, offsets, local_rows);
  evaluation_.gather_keys(ctx, nullptr, 0);
  evaluation_.receive_keys(ctx, nullptr, 0);
  const EmbeddingTable::Batch batch = table_.find(ctx, evaluation_.owned_keys(0), evaluation_.owned_offsets(0));
  evaluation_.send_vectors(ctx, 0, rows_of(batch),
                           [&](const ops::SampleShards& shards) { table_.pool(ctx, batch, shards); });
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

void ShardedEmbedding::export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) {
  or_abort(comm_, [&] {  // the other ranks wait for the next block, so an error must abort them
    PieceJoining joining(table_.spec(), sink);
    const std::function<void(const RowBlock&)> join = [&](const RowBlock& block) { joining.add(block); };
    RowGathering gathering(comm_, table_.spec(), placement_.pieces > 1 ? join : sink);
    table_.export_rows(wanted, [&](const RowBlock& block) { gathering.add(block); });
    gathering.finish();
  });
}

std::vector<SlotKey> ShardedEmbedding::removed_keys() {
  std::vector<SlotKey> all;
  if (!spec_.policy.removes_rows()) return all;  // every rank returns here, because the policy is equal on all ranks
  Json mine(Json::Array{});
  for (const auto& [slot, key] : table_.removed_keys()) mine.add(int64_t{slot}).add(key);
  for (const std::string& text : comm_.gather(mine.text(), 0)) {
    const Json::Array keys = *Json::parse(text, "removed keys").array();
    for (size_t i = 0; i + 1 < keys.size(); i += 2)
      all.emplace_back(static_cast<int32_t>(*keys[i].integer()), *keys[i + 1].integer());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());  // `all` lists the key of a split row once per piece
  return all;
}

void ShardedEmbedding::import_rows(const RowBlock& rows) { import_owned_rows(placement_, comm_.rank(), rows, table_); }

}  // namespace hctr
