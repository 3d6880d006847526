#include "net/model/replica.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "net/fusion/fuse_layers.h"
#include "ops/gemm/linear.h"

namespace hctr {
namespace {

/// [slot] the maximum number of keys per bag that a batch keeps.
std::vector<int64_t> kept_keys(const SparseInput& input, int64_t slots) {
  std::vector<int64_t> keys;
  for (int64_t s = 0; s < slots; ++s) keys.push_back(input.kept_nnz(s));
  return keys;
}

/// The number of rows that the config states, in total or per rank; equal on every rank. 0 if the number depends on the
/// data.
double known_rows(const EmbeddingSection& section) {
  const std::vector<int64_t>& sizes = section.hparam.slot_size_array;
  if (sizes.empty()) return static_cast<double>(section.stated_rows(0, Placement{}));
  return std::accumulate(sizes.begin(), sizes.end(), 0.0);
}

}  // namespace

Graph wired_graph(const Config& config, int64_t samples, Phase phase) {
  Problems problems;
  Graph graph = wire(config, samples, problems);
  HCTR_EXPECT(!problems.any_error(), "a config with ", problems.errors().size(), " problems");
  fuse_layers(graph, phase == Phase::train ? config.solver.mixed_precision : Precision{});
  return graph;
}

Replica::Replica(const Config& config, Runtime& runtime, Communicator& comm, const ReplicaShape& shape)
    : config_(config),
      runtime_(runtime),
      comm_(comm),
      train_graph_(wired_graph(config, shape.samples, Phase::train)),
      eval_graph_(wired_graph(config, shape.eval_samples, Phase::evaluate)),
      weights_(config, train_graph_, runtime, shape.use),
      gradients_(weights_, runtime, comm),
      state_(config, train_graph_, runtime),
      fp8_scales_(train_graph_, runtime),
      train_(train_graph_, shape.use == ReplicaUse::train ? Phase::train : Phase::evaluate, weights_, state_, runtime,
             comm, &gradients_),
      evaluation_(eval_graph_, Phase::evaluate, weights_, state_, runtime, comm),
      streams_(runtime, comm.size() > 1) {
  std::vector<PlannedTable> planned = planned_tables(shape);
  const bool exchanges_fp16 = comm.size() > 1 && std::ranges::any_of(planned, [](const PlannedTable& table) {
                                return table.spec.exchange == DType::f16;
                              });
  if (shape.use == ReplicaUse::score_dense)
    for (PlannedTable& table : planned) specs_of_others_.push_back(std::move(table.spec));
  else
    make_tables(planned, shape);
  facts_of_tables_ = {.gpu = gpu_traits(runtime.device()),
                      .ranks = comm.size(),
                      .recorded_whole = fixed_sizes(),
                      .tables = table_facts(tables_)};
  if (comm.size() == 1) {
    Context weights_side = streams_.on(StepStream::weights, Context(runtime, runtime.compute_stream()));
    ops::add_product_stream(weights_side);
  }
  if (const Precision& precision = config.solver.mixed_precision; precision.may_overflow())
    scaler_.emplace(precision, runtime);
  else if (exchanges_fp16 && shape.use != ReplicaUse::score_dense)
    scaler_.emplace(Precision::scaled(), runtime);
  else if (config.solver.on_nan == OnNan::skip)
    // The scale stays 1. The scaler only checks gradients and skips steps.
    scaler_.emplace(Precision{}, runtime);
}

std::vector<Replica::PlannedTable> Replica::planned_tables(const ReplicaShape& replica) const {
  const BatchShape shape = batch_shape(config_.data, replica.samples),
                   eval_shape = batch_shape(config_.data, replica.eval_samples);
  std::vector<PlannedTable> planned;
  for (size_t e = 0; e < config_.embeddings.size(); ++e) {
    const size_t input = train_graph_.embedding_inputs[e];
    const EmbeddingSection& section = config_.embeddings[e].section;
    const BatchShape::Table &table = shape.tables[input], &eval_table = eval_shape.tables[input];
    const Placement placement =
        replica.placements.empty()
            ? Placement::without_plan(section.placement_rule(), section.identity_by_slot(), table.slots, comm_.size())
            : replica.placements.at(e);
    TableSpec spec = section.table_spec(
        {.optimizer = config_.optimizer,
         .schedule_sets_rate = config_.solver.compatibility.schedule_sets_embedding_rates,
         .exchange = config_.solver.exchange(),
         .marks_changes = config_.solver.checkpoint.whole_every > 1 || config_.solver.snapshot_delta > 0,
         .memory = section.table_memory && replica.use != ReplicaUse::score_dense
                       ? own_row_memory(*section.table_memory, config_.solver.table_memory, section.top(),
                                        runtime_.row_memory(), runtime_.device(), comm_)
                       : nullptr,
         .rank = comm_.rank(),
         .ranks = comm_.size(),
         .placement = placement,
         .batch = config_.solver.batchsize,
         .slot_keys = kept_keys(config_.data.sparse[input], table.slots),
         .samples = replica.samples,
         .key_capacity = table.key_capacity,
         .eval_samples = replica.eval_samples,
         .eval_key_capacity = eval_table.key_capacity});
    if (replica.use != ReplicaUse::train) {
      spec.loads_only = true;
      spec.row_hint = 0;
      spec.marks_changes = false;
    }
    const double bytes = known_rows(section) * static_cast<double>(number_bytes_of_row(spec));
    planned.push_back({placement, std::move(spec), bytes});
  }
  return planned;
}

/// Makes the tables in ascending order of size. Tables that share a memory budget get GPU memory in this order, because
/// each byte of a small table serves more reads.
void Replica::make_tables(const std::vector<PlannedTable>& planned, const ReplicaShape& shape) {
  std::vector<size_t> order(planned.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t one, size_t other) { return planned[one].bytes < planned[other].bytes; });
  tables_.resize(planned.size());
  for (const size_t e : order)
    tables_[e] = make_embedding(runtime_, comm_, planned[e].placement, planned[e].spec, shape.ring_size,
                                {train_.embedding_output(e), evaluation_.embedding_output(e)});
}

Replica::Binding Replica::bind(Phase phase, const BatchTensors& batch) const {
  // With several ranks, the all-reduce checks the summed wgrads, so layers do not check operands.
  const bool train = phase == Phase::train;
  Binding binding{network(phase).bind(batch.label, batch.dense,
                                      train && scaler_ ? scaler_->search() : ops::OverflowSearch{}, comm_.size() == 1,
                                      train && !fp8_scales_.empty() ? &fp8_scales_ : nullptr)};
  if (!train) return binding;
  binding.plan = std::make_shared<const StepPlan>(plan_step(step_facts(binding)));
  binding.events = std::make_shared<StepEvents>(*binding.plan, runtime_.device());
  return binding;
}

StepFacts Replica::step_facts(const Network::Binding& binding) const {
  StepFacts facts = facts_of_tables_;
  const DType activations = config_.solver.mixed_precision.activations;
  const RuntimeOptions& options = runtime_.options();
  facts.tensor_cores = activations != DType::f32 || options.tf32;
  facts.may_skip = scaler_.has_value();
  facts.penalty = has_penalty();
  facts.copies_dense = binding.dense.has_value();
  facts.bag_lengths = std::ranges::any_of(train_graph_.lengths, [](const auto& id) { return id.has_value(); });
  facts.several_losses = train_.sums_losses();
  facts.fp8 = !fp8_scales_.empty();
  facts.layers = layer_facts(train_graph_, binding.calls, facts.gpu, options);
  for (size_t n = 0; comm_.size() > 1 && n < facts.layers.size(); ++n)
    facts.layers[n].sums_over_ranks = gradients_.sums_at(n);
  if (!tables_.empty()) {
    const Tensor vectors = train_.embedding_output(0);
    facts.lookup_shares =
        ops::shares_beside_lookup(facts.gpu, vectors.dtype(), options.tf32 && !options.tf32x3, vectors.dim(0));
  }
  return facts;
}

void Replica::freeze(const std::string& name, bool frozen) {
  weights_.freeze(name, frozen);
  for (const auto& table : tables_)
    if (table->spec().name == name) table->freeze(frozen);
}

void Replica::reserve_rows(int64_t step) {
  std::optional<Error> refusal;
  for (const auto& table : tables_) {
    try {
      table->reserve_rows(step);
    } catch (const Error& error) {
      if (error.kind() != Kind::data) throw;
      if (!refusal) refusal = error;
    }
  }
  if (refusal) throw *refusal;
}

bool Replica::reserve_memory() {
  bool grown = false;
  for (const auto& table : tables_) grown = table->reserve_memory() || grown;
  return grown;
}

bool Replica::consume_rerecord_flag() {
  bool any = false;
  for (const auto& table : tables_) any = table->consume_rerecord_flag() || any;
  return any;
}

void Replica::confirm_capacity(int buffer) const {
  for (const auto& table : tables_) table->confirm_capacity(buffer);
}

void Replica::enforce_limit(int buffer) {
  for (const auto& table : tables_) table->enforce_limit(buffer);
}

bool Replica::may_refuse() const {
  for (size_t e = 0; e < tables_.size(); ++e) {
    const EmbeddingSection& section = config_.embeddings[e].section;
    if (section.hparam.limited() || section.direct() || budget_of(runtime_, tables_[e]->spec()).has_disk()) return true;
  }
  return false;
}

void Replica::check_keys() const {
  for (const auto& table : tables_) table->check_keys();
}

void Replica::look_ahead(size_t sparse_input, std::span<const ops::RowOwner> keys) {
  for (size_t e = 0; e < tables_.size(); ++e)
    if (train_graph_.embedding_inputs[e] == sparse_input) tables_[e]->look_ahead(keys);
}

DiskRows::Fetched Replica::disk_fetched() const {
  DiskRows::Fetched all;
  for (const auto& table : tables_) {
    const DiskRows::Fetched one = table->disk_fetched();
    all.ahead += one.ahead;
    all.again += one.again;
  }
  return all;
}

std::vector<std::string> Replica::tasks() const {
  std::vector<std::string> names;
  for (const size_t n : train_graph_.losses) names.push_back(train_graph_.nodes[n].entry->tops[0]);
  return names;
}

int64_t Replica::embedding_rows() const {
  int64_t rows = 0;
  for (const auto& table : tables_) rows += table->rows();
  return rows;
}

bool Replica::fixed_sizes() const {
  return std::all_of(tables_.begin(), tables_.end(), [](const auto& table) { return table->fixed_sizes(); });
}

BytesBetweenHosts Replica::bytes_between_hosts() const {
  BytesBetweenHosts bytes;
  for (const auto& table : tables_) bytes += table->bytes_between_hosts();
  return bytes;
}

int64_t Replica::embedding_elements() const {
  int64_t elements = 0;
  for (size_t e = 0; e < tables_.size(); ++e) elements += train_.embedding_output(e).elements();
  return elements;
}

std::vector<std::string> Replica::tables_with_shared_row() const {
  std::vector<std::string> names;
  for (const auto& table : tables_)
    if (table->uses_shared_row()) names.push_back(table->spec().name);
  return names;
}

std::optional<ops::LossScale> Replica::loss_scale() const {
  return scaler_ ? std::optional(scaler_->read(runtime_.compute_stream())) : std::nullopt;
}

}  // namespace hctr
