#include "model/model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "device/profiler.h"
#include "model/fuse_layers.h"
#include "ops/embedding/bag_lengths.h"
#include "ops/linear.h"

namespace hctr {
namespace {

constexpr const char *kEmbedding = "embedding", *kWeights = "weights";  // in profiles

Graph wired(const Config& config, int64_t samples, Phase phase) {
  Problems problems;
  Graph graph = wire(config, samples, problems);
  HCTR_EXPECT(!problems.any_error(), "a config with ", problems.errors().size(), " problems");
  fuse_layers(graph, phase == Phase::train ? config.solver.mixed_precision : Precision{});
  return graph;
}

/// Most keys of a bag of each slot that a batch keeps.
std::vector<int64_t> kept_keys(const SparseInput& input, int64_t slots) {
  std::vector<int64_t> keys;
  for (int64_t s = 0; s < slots; ++s) keys.push_back(input.kept_nnz(s));
  return keys;
}

/// As the config states them, of all ranks or of each: every rank gets the same. 0: as many as the data have.
double known_rows(const EmbeddingSection& section) {
  const std::vector<int64_t>& sizes = section.hparam.slot_size_array;
  if (sizes.empty()) return static_cast<double>(section.stated_rows(0, Placement{}));
  return std::accumulate(sizes.begin(), sizes.end(), 0.0);
}

}  // namespace

Model::Model(const Config& config, Runtime& runtime, Communicator& comm, int64_t samples, int64_t eval_samples,
             int ring_size, const std::vector<Placement>& placements)
    : config_(config),
      runtime_(runtime),
      comm_(comm),
      train_graph_(wired(config, samples, Phase::train)),
      eval_graph_(wired(config, eval_samples, Phase::evaluate)),
      weights_(config, train_graph_, runtime),
      gradients_(weights_, runtime, comm),
      state_(config, train_graph_, runtime),
      fp8_scales_(train_graph_, runtime),
      train_(train_graph_, Phase::train, weights_, state_, runtime, comm, &gradients_),
      evaluation_(eval_graph_, Phase::evaluate, weights_, state_, runtime, comm),
      side_stream_(runtime.exchange_stream()),
      weights_stream_(runtime.device()),
      beside_stream_(runtime.device()),
      signal_stream_(runtime.device()),
      weights_side_(weights_stream_),
      beside_(beside_stream_),
      signal_(signal_stream_),
      loss_complete_(runtime.device()),
      loss_known_(runtime.device()),
      skip_known_(runtime.device()) {
  const BatchShape shape = batch_shape(config.data, samples), eval_shape = batch_shape(config.data, eval_samples);
  bool exchanges_fp16 = false;
  struct Planned {
    Placement placement;
    TableSpec spec;
    double bytes;  // that the rows of all ranks take, as far as that is known
  };
  std::vector<Planned> planned;
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const size_t input = train_graph_.embedding_inputs[e];
    const EmbeddingSection& section = config.embeddings[e].section;
    const BatchShape::Table &table = shape.tables[input], &eval_table = eval_shape.tables[input];
    const Placement placement =
        placements.empty()
            ? Placement::without_plan(section.placement_rule(), section.identity_by_slot(), table.slots, comm.size())
            : placements.at(e);
    TableSpec spec = section.table_spec(
        {.optimizer = config.optimizer,
         .schedule_sets_rate = config.solver.compatibility.schedule_sets_embedding_rates,
         .exchange = config.solver.exchange(),
         .marks_changes = config.solver.checkpoint.whole_every > 1 || config.solver.snapshot_delta > 0,
         .memory = section.table_memory ? own_row_memory(*section.table_memory, config.solver.table_memory,
                                                         section.top(), runtime.row_memory(), runtime.device(), comm)
                                        : nullptr,
         .rank = comm.rank(),
         .ranks = comm.size(),
         .placement = placement,
         .batch = config.solver.batchsize,
         .slot_keys = kept_keys(config.data.sparse[input], table.slots),
         .samples = samples,
         .key_capacity = table.key_capacity,
         .eval_samples = eval_samples,
         .eval_key_capacity = eval_table.key_capacity});
    exchanges_fp16 = exchanges_fp16 || (spec.exchange == DType::f16 && comm.size() > 1);
    const double bytes = known_rows(section) * static_cast<double>(number_bytes_of_row(spec));
    planned.push_back({placement, std::move(spec), bytes});
  }
  // Small tables first: where they share a budget, who comes first is on the GPU, and a byte there serves more reads.
  std::vector<size_t> order(planned.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t one, size_t other) { return planned[one].bytes < planned[other].bytes; });
  tables_.resize(planned.size());
  for (const size_t e : order)
    tables_[e] = make_embedding(runtime, comm, planned[e].placement, planned[e].spec, ring_size,
                                {train_.embedding_output(e), evaluation_.embedding_output(e)});
  if (fixed_sizes()) {
    loss_complete_.stay_inside();
    loss_known_.stay_inside();
    skip_known_.stay_inside();
  }
  if (comm.size() == 1) {
    Context weights_side(runtime, weights_stream_);
    ops::add_product_stream(weights_side);
    schedule_ = local_schedule(tables_, train_, runtime_, side_stream_);
  } else {
    schedule_ = distributed_schedule(tables_, train_, runtime, side_stream_, gradients_, !fixed_sizes());
  }
  if (const Precision& precision = config.solver.mixed_precision; precision.may_overflow())
    scaler_.emplace(precision, runtime);
  else if (exchanges_fp16)
    scaler_.emplace(Precision::scaled(), runtime);
  else if (config.solver.on_nan == OnNan::skip)
    scaler_.emplace(Precision{}, runtime);  // searches gradients and skips steps at a constant scale of 1
}

Network::Binding Model::bind(Phase phase, const BatchTensors& batch) const {
  // Several ranks search the gradients as they send them.
  const bool searches = phase == Phase::train && scaler_ && comm_.size() == 1;
  return network(phase).bind(batch.label, batch.dense, searches ? scaler_->search() : ops::OverflowSearch{},
                             phase == Phase::train && !fp8_scales_.empty() ? &fp8_scales_ : nullptr);
}

void Model::reserve_rows(int64_t step) {
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

void Model::reserve_memory() {
  for (const auto& table : tables_) table->reserve_memory();
}

bool Model::consume_rerecord_flag() {
  bool any = false;
  for (const auto& table : tables_) any = table->consume_rerecord_flag() || any;
  return any;
}

void Model::confirm_capacity(int buffer) const {
  for (const auto& table : tables_) table->confirm_capacity(buffer);
}

void Model::enforce_limit(int buffer) {
  for (const auto& table : tables_) table->enforce_limit(buffer);
}

bool Model::may_refuse() const {
  for (size_t e = 0; e < tables_.size(); ++e) {
    const EmbeddingSection& section = config_.embeddings[e].section;
    if (section.hparam.limited() || section.direct() || budget_of(runtime_, tables_[e]->spec()).has_disk()) return true;
  }
  return false;
}

void Model::check_keys() const {
  for (const auto& table : tables_) table->check_keys();
}

void Model::look_ahead(size_t sparse_input, std::span<const ops::RowOwner> keys) {
  for (size_t e = 0; e < tables_.size(); ++e)
    if (train_graph_.embedding_inputs[e] == sparse_input) tables_[e]->look_ahead(keys);
}

DiskRows::Fetched Model::disk_fetched() const {
  DiskRows::Fetched all;
  for (const auto& table : tables_) {
    const DiskRows::Fetched one = table->disk_fetched();
    all.ahead += one.ahead;
    all.again += one.again;
  }
  return all;
}

void Model::train_step(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch,
                       const Network::Binding& binding, const StepCallbacks& callbacks) {
  side_stream_.stay_outside(fixed_sizes() ? nullptr : recording);
  const LossScaler* const scaler = scaler_ ? &*scaler_ : nullptr;
  // Products without tensor cores fill the GPU longer than such layers take.
  const bool tensor_cores = config_.solver.mixed_precision.activations != DType::f32 || runtime_.options().tf32;
  SideStream* const beside = comm_.size() == 1 && fixed_sizes() && tensor_cores ? &beside_ : nullptr;
  std::function<void(Context&)> begin = [scaler, state = batch.state](Context& own) {
    if (scaler) scaler->begin(own, state);
  };
  if (beside)  // called at once: several ranks have none
    begin = [&, begin_scaled = std::move(begin)](Context& own) {
      begin_scaled(own);
      train_.before_lookup(ctx, binding, *beside);
    };
  schedule_->begin_forward(ctx, buffer, begin);
  {
    const ProfiledPart part(ctx, "forward", kEmbedding, "lengths of bags");
    write_lengths(ctx, batch, train_);
  }
  train_.forward(ctx, binding, [&](size_t node) { return schedule_->before_forward(ctx, buffer, node); }, beside);
  {
    const ProfiledPart part(ctx, "forward", kWeights, "penalty");
    add_penalties(ctx, train_);
  }
  side_stream_.run_after(ctx, loss_complete_, [this, loss_known = callbacks.loss_known](Context& exchange) {
    {
      const ProfiledPart part(exchange, "all-reduce", kWeights, "loss");
      comm_.all_reduce(exchange, train_.loss(), Reduce::sum);
    }
    if (loss_known) loss_known(exchange);  // before the updates of tables, which run on this stream or behind it
    loss_known_.record(exchange.stream());
  });

  // On one GPU, where the first layers read no embeddings, the gradients of weights are the last to be computed. In f16
  // they are finite if their operands are. So it is known before them whether the step is skipped, and tables are
  // updated beside them.
  bool known_early = false;
  const auto end_early = [&](Context& others, std::span<const Lockstep::LateResult> late) {
    schedule_->receive_gradients(others, buffer);
    Context side = side_stream_.after(others);
    {
      const ProfiledPart part(side, "overflow search", kWeights, "all weights");
      scaler->end(side, searched_instead_of(late), comm_, batch.state);
    }
    skip_known_.record(side.stream());
    schedule_->update(side, buffer, true);
    known_early = true;
  };
  using BeforeLate = decltype(Network::BackwardCallbacks::before_late);
  const bool early = scaler && comm_.size() == 1 && fixed_sizes();
  // The last node that gradients of tables wait for, and the one behind which their sums begin.
  const size_t reader = train_.first_reader();
  const size_t sums_behind = beside && train_.keeps_busy_before_embeddings(binding) ? reader - 1 : reader;
  bool told = false;
  const auto tell = [&](Context& own) {
    Context signal = signal_.after(own);  // a stream that delays nothing
    callbacks.embeddings_known(signal);
    told = true;
  };
  using Tell = decltype(Network::BackwardCallbacks::embeddings_known);

  train_.backward(ctx, binding,
                  {.inputs =
                       [&](size_t node) {
                         if (node == sums_behind)
                           schedule_->after_backward(ctx, buffer, reader, scaler);
                         else if (node != reader)
                           schedule_->after_backward(ctx, buffer, node, scaler);
                       },
                   .weights =
                       [&](size_t node) {
                         {
                           const ProfiledPart part(ctx, "weight gradients", kWeights, "penalty");
                           add_penalty_gradients(ctx, node);
                         }
                         gradients_.node_done(ctx, node);
                       },
                   .weights_reads = comm_.size() > 1 || has_penalty(),
                   .weights_side = &weights_side_,
                   .beside = beside,
                   .embeddings_known = beside && callbacks.embeddings_known ? tell : Tell(),
                   .before_late = early ? end_early : BeforeLate()});
  if (known_early)
    skip_known_.make_wait(ctx.stream());
  else
    update_tables(ctx, buffer, batch.state);
  loss_known_.make_wait(ctx.stream());
  fp8_scales_.finish(ctx, comm_);
  {
    const ProfiledPart part(ctx, "update", kWeights, "all weights", weights_.work_of_update());
    weights_.update(ctx);
  }
  if (told) signal_.join(ctx);
  side_stream_.join(ctx);
}

void Model::update_tables(Context& ctx, int buffer, StepState* state) {
  if (!scaler_) {
    schedule_->receive_gradients(ctx, buffer);
    schedule_->update(ctx, buffer, false);
    gradients_.join(ctx);  // only here: the all-reduce of the first layers' gradients runs while tables are updated
    return side_stream_.end_piece();
  }
  gradients_.join(ctx);
  side_stream_.join(ctx);  // waits for the overflow search of sent gradients, but not for received ones
  schedule_->receive_gradients(ctx, buffer);
  {
    const ProfiledPart part(ctx, "overflow search", kWeights, "all weights");
    scaler_->end(ctx, {weights_.all_gradients()}, comm_, state);
  }
  schedule_->update(ctx, buffer, true);
}

std::vector<Tensor> Model::searched_instead_of(std::span<const Lockstep::LateResult> late) const {
  std::vector<Tensor> results;
  for (const Lockstep::LateResult& one : late) results.push_back(one.result);
  std::vector<Tensor> searched = weights_.gradients_without(results);
  for (const Lockstep::LateResult& one : late)
    searched.insert(searched.end(), one.unsearched.begin(), one.unsearched.end());
  return searched;
}

void Model::evaluate(Context& ctx, const BatchTensors& batch, const Network::Binding& binding) {
  schedule_->for_each(ctx, "lookup", [&](Context& own, size_t e) {
    const size_t input = eval_graph_.embedding_inputs[e];
    tables_[e]->lookup(own, batch.keys[input], batch.offsets[input], evaluation_.embedding_output(e));
  });
  write_lengths(ctx, batch, evaluation_);
  evaluation_.forward(ctx, binding);
  // The penalty is part of the loss in evaluation too, for the size of a training batch, as the weights were trained.
  add_penalties(ctx, evaluation_);
  comm_.all_reduce(ctx, evaluation_.loss(), Reduce::sum);
  if (eval_graph_.losses.size() > 1)
    for (const Tensor& loss : evaluation_.losses()) comm_.all_reduce(ctx, loss, Reduce::sum);
}

void Model::write_lengths(Context& ctx, const BatchTensors& batch, const Network& network) const {
  for (size_t e = 0; e < tables_.size(); ++e)
    if (const auto lengths = network.embedding_lengths(e))
      ops::bag_lengths(ctx, batch.offsets[train_graph_.embedding_inputs[e]].data<const int32_t>(), *lengths);
}

void Model::add_penalties(Context& ctx, const Network& network) const {
  for (auto regularizer : network.regularizers()) {
    regularizer.lambda *= penalty_factors().loss;
    weights_.add_penalty(ctx, regularizer, config_.solver.batchsize, comm_.size(), network.loss());
  }
}

void Model::add_penalty_gradients(Context& ctx, size_t node) const {
  for (auto regularizer : train_.regularizers()) {
    regularizer.lambda *= penalty_factors().gradient;
    weights_.add_penalty_gradients(ctx, node, regularizer, config_.solver.batchsize, comm_.size());
  }
}

bool Model::has_penalty() const {
  const auto regularizers = train_.regularizers();
  return std::any_of(regularizers.begin(), regularizers.end(), [](const LossLayer::Regularizer& regularizer) {
    return regularizer.kind != LossLayer::Regularizer::Kind::none;
  });
}

Model::PenaltyFactors Model::penalty_factors() const {
  if (!config_.solver.compatibility.penalty_per_gpu) return {};
  const auto gpus = static_cast<double>(config_.solver.gpu.all ? comm_.size() : config_.solver.gpu.count());
  const Precision& precision = config_.solver.mixed_precision;
  return {gpus, gpus * gpus / (precision.dynamic_scale ? 1 : precision.loss_scale)};
}

std::vector<std::string> Model::tasks() const {
  std::vector<std::string> names;
  for (const size_t n : train_graph_.losses) names.push_back(train_graph_.nodes[n].entry->tops[0]);
  return names;
}

int64_t Model::embedding_rows() const {
  int64_t rows = 0;
  for (const auto& table : tables_) rows += table->rows();
  return rows;
}

bool Model::fixed_sizes() const {
  if (config_.solver.steps_in_pieces && comm_.size() > 1) return false;
  return std::all_of(tables_.begin(), tables_.end(), [](const auto& table) { return table->fixed_sizes(); });
}

BytesBetweenHosts Model::bytes_between_hosts() const {
  BytesBetweenHosts bytes;
  for (const auto& table : tables_) bytes += table->bytes_between_hosts();
  return bytes;
}

int64_t Model::embedding_elements() const {
  int64_t elements = 0;
  for (size_t e = 0; e < tables_.size(); ++e) elements += train_.embedding_output(e).elements();
  return elements;
}

std::vector<std::string> Model::tables_with_shared_row() const {
  std::vector<std::string> names;
  for (const auto& table : tables_)
    if (table->uses_shared_row()) names.push_back(table->spec().name);
  return names;
}

std::optional<ops::LossScale> Model::loss_scale() const {
  return scaler_ ? std::optional(scaler_->read(runtime_.compute_stream())) : std::nullopt;
}

}  // namespace hctr
