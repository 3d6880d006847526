#include "model/model.h"

#include <algorithm>

#include "base/current_error.h"
#include "comm/collective_error.h"
#include "device/profiler.h"
#include "embedding/access_stats_file.h"
#include "embedding/sparse_file.h"
#include "model/fuse_layers.h"
#include "ops/embedding/bag_lengths.h"

namespace hctr {
namespace {

constexpr const char *kEmbedding = "embedding", *kWeights = "weights";  // in profiles

Graph wired(const Config& config, int64_t samples) {
  Problems problems;
  Graph graph = wire(config, samples, problems);
  HCTR_EXPECT(!problems.any_error(), "a config with ", problems.errors().size(), " problems");
  fuse_layers(graph);
  return graph;
}

/// Most keys of a bag of each slot that a batch keeps.
std::vector<int64_t> kept_keys(const SparseInput& input, int64_t slots) {
  std::vector<int64_t> keys;
  for (int64_t s = 0; s < slots; ++s) keys.push_back(input.kept_nnz(s));
  return keys;
}

/// The width of keys in model files that the config gives; 0 if it gives none.
int stated_key_bytes(const SolverSection& solver) {
  return !solver.input_key_type ? 0 : *solver.input_key_type == KeyType::i32 ? 4 : 8;
}

}  // namespace

Model::Model(const Config& config, Runtime& runtime, Communicator& comm, int64_t samples, int64_t eval_samples,
             int ring_size, const std::vector<Placement>& placements)
    : config_(config),
      runtime_(runtime),
      comm_(comm),
      train_graph_(wired(config, samples)),
      eval_graph_(wired(config, eval_samples)),
      weights_(config, train_graph_, runtime),
      gradients_(weights_, runtime, comm),
      state_(config, train_graph_, runtime),
      train_(train_graph_, Phase::train, weights_, state_, runtime, comm, &gradients_),
      evaluation_(eval_graph_, Phase::evaluate, weights_, state_, runtime, comm),
      side_stream_(runtime, comm) {
  const BatchShape shape = batch_shape(config.data, samples), eval_shape = batch_shape(config.data, eval_samples);
  bool exchanges_fp16 = false;
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const size_t input = train_graph_.embedding_inputs[e];
    const EmbeddingSection& section = config.embeddings[e].section;
    const BatchShape::Table &table = shape.tables[input], &eval_table = eval_shape.tables[input];
    const Placement placement =
        placements.empty()
            ? Placement::without_plan(section.placement_rule(), section.identity_by_slot(), table.slots, comm.size())
            : placements.at(e);
    const TableSpec spec =
        section.table_spec({.optimizer = config.optimizer,
                            .schedule_sets_rate = config.solver.compatibility.schedule_sets_embedding_rates,
                            .exchange = config.solver.exchange(),
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
    tables_.push_back(make_embedding(runtime, comm, placement, spec, ring_size,
                                     {train_.embedding_output(e), evaluation_.embedding_output(e)}));
  }
  if (comm.size() == 1)
    schedule_ = local_schedule(tables_, train_);
  else
    schedule_ = distributed_schedule(tables_, train_, runtime, side_stream_, gradients_);
  if (const Precision& precision = config.solver.mixed_precision; precision.may_overflow())
    scaler_.emplace(precision, runtime);
  else if (exchanges_fp16)
    scaler_.emplace(Precision::scaled(), runtime);
  else if (config.solver.on_nan == OnNan::skip)
    scaler_.emplace(Precision{}, runtime);  // searches gradients and skips steps at a constant scale of 1
}

Network::Binding Model::bind(Phase phase, const BatchTensors& batch) const {
  return network(phase).bind(batch.label, batch.dense);
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
  return std::any_of(config_.embeddings.begin(), config_.embeddings.end(), [](const EmbeddingEntry& embedding) {
    return embedding.section.hparam.limited() || embedding.section.direct();
  });
}

void Model::check_keys() const {
  for (const auto& table : tables_) table->check_keys();
}

void Model::prepare(Context& ctx, int buffer, const BatchTensors& batch) {
  schedule_->for_each(ctx, "prepare", [&](Context& own, size_t e) {
    const size_t input = train_graph_.embedding_inputs[e];
    tables_[e]->prepare(own, buffer, batch.keys[input], batch.offsets[input]);
  });
}

void Model::train_step(Context& ctx, int buffer, const BatchTensors& batch, const Network::Binding& binding) {
  const LossScaler* const scaler = scaler_ ? &*scaler_ : nullptr;
  if (scaler) scaler->begin(ctx, batch.state);

  schedule_->begin_forward(ctx, buffer);
  {
    const ProfiledPart part(ctx, "forward", kEmbedding, "lengths of bags");
    write_lengths(ctx, batch, train_);
  }
  train_.forward(ctx, binding, [&](size_t node) { schedule_->before_forward(ctx, buffer, node); });
  {
    const ProfiledPart part(ctx, "forward", kWeights, "penalty");
    add_penalties(ctx, train_);
  }
  {
    Context exchange = side_stream_.after(ctx);
    const ProfiledPart part(exchange, "all-reduce", kWeights, "loss");
    comm_.all_reduce(exchange, train_.loss(), Reduce::sum);
  }

  train_.backward(ctx, binding,
                  {.inputs = [&](size_t node) { schedule_->after_backward(ctx, buffer, node, scaler); },
                   .weights =
                       [&](size_t node) {
                         {
                           const ProfiledPart part(ctx, "weight gradients", kWeights, "penalty");
                           add_penalty_gradients(ctx, node);
                         }
                         gradients_.node_done(ctx, node);
                       }});
  if (scaler) side_stream_.join(ctx);  // waits for the overflow search of sent gradients, but not for received ones
  schedule_->receive_gradients(ctx, buffer);

  if (scaler) {
    gradients_.join(ctx);
    const ProfiledPart part(ctx, "overflow search", kWeights, "all weights");
    ops::find_overflow(ctx, weights_.all_gradients(), scaler->search());
    scaler->end(ctx, comm_, batch.state);
  }
  schedule_->update(ctx, buffer);
  gradients_.join(ctx);  // only here: the all-reduce of the first layers' gradients runs while tables are updated
  {
    const ProfiledPart part(ctx, "update", kWeights, "all weights", weights_.work_of_update());
    weights_.update(ctx);
  }
  side_stream_.join(ctx);
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

Model::PenaltyFactors Model::penalty_factors() const {
  if (!config_.solver.compatibility.penalty_per_gpu) return {};
  const auto gpus = static_cast<double>(config_.solver.gpu.count());
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

int64_t Model::embedding_elements() const {
  int64_t elements = 0;
  for (size_t e = 0; e < tables_.size(); ++e) elements += train_.embedding_output(e).elements();
  return elements;
}

std::map<std::string, std::map<std::string, int64_t>> Model::table_counts() const {
  std::map<std::string, std::map<std::string, int64_t>> counts;
  for (const auto& table : tables_)
    if (table->spec().policy.any()) counts[table->spec().name] = table->counts();
  return counts;
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

std::vector<std::filesystem::path> Model::save(const std::string& prefix, int64_t iteration, int data_key_bytes) {
  const int stated = stated_key_bytes(config_.solver), key_bytes = stated > 0          ? stated
                                                                   : wide_keys_loaded_ ? 8
                                                                                       : data_key_bytes;
  comm_.barrier();  // from here on ranks wait as long as writing takes
  std::vector<std::filesystem::path> files = {cat(prefix, "_dense_", iteration, ".model")};
  FileSet set;
  std::optional<Error> failed;
  const auto on_writer = [&](const auto& body) {  // the other ranks wait for rank 0, so its error does not leave here
    if (comm_.rank() != 0 || failed) return false;
    try {
      body();
    } catch (...) {
      failed = current_error();
    }
    return true;
  };
  on_writer([&] { weights_.save(set, files[0], runtime_.compute_stream()); });  // replicated on all ranks
  for (size_t e = 0; e < tables_.size(); ++e) {
    files.emplace_back(cat(prefix, e, "_sparse_", iteration, ".model"));
    if (!on_writer([&] { save_sparse(set, files.back(), *tables_[e], key_bytes); }))
      tables_[e]->export_rows(false, [](const RowBlock&) {});  // to rank 0
    if (tables_[e]->spec().policy.keeps_access_stats()) files.push_back(access_stats_path(files.back()));
  }
  if (!state_.empty()) {
    files.push_back(LayerState::path_for(files[0]));
    on_writer([&] { state_.save(set, files.back(), runtime_.compute_stream()); });
  }
  on_writer([&] { set.commit(); });
  comm_.barrier();  // files are complete for every rank
  throw_on_all_ranks(comm_, failed);
  return files;
}

void Model::load(const Log& log) {
  // Rank 0 decides whether access statistics are loaded, since all ranks must load them.
  const auto with_access_stats = [&](const std::string& file) {
    return comm_.broadcast(has_access_stats(file) ? "yes" : "", 0) == "yes";
  };
  if (const std::string& dense = config_.solver.dense_model_file; !dense.empty()) {
    Context ctx(runtime_, runtime_.compute_stream());
    weights_.load(dense, ctx);
    if (const auto path = LayerState::path_for(dense); !state_.empty() && std::filesystem::exists(path))
      state_.load(path, runtime_.compute_stream());
  }
  for (size_t e = 0; e < config_.solver.sparse_model_file.size(); ++e)
    wide_keys_loaded_ |= load_sparse(config_.solver.sparse_model_file[e], *tables_[e], stated_key_bytes(config_.solver),
                                     with_access_stats(config_.solver.sparse_model_file[e]), log);
}

void Model::save_state(StateWriter to) {
  if (to.rank() == 0) {  // replicated on all ranks
    weights_.save_state(to.in("weights"));
    if (scaler_) scaler_->save_state(to.in("loss"));
  }
  state_.save_state(to.in("layers"));  // with "batch_norm_per_gpu" each rank has its own
  to.number("wide_keys", wide_keys_loaded_);
  for (size_t e = 0; e < tables_.size(); ++e) tables_[e]->save_state(to.in(cat("tables/", e)));
}

void Model::load_state(const StateReader& from) {
  const StateReader first = from.of_rank(0), own = from.exact() ? from : from.of_rank(from.rank() % from.ranks());
  Context ctx(runtime_, runtime_.compute_stream());
  weights_.load_state(first.in("weights"), ctx);
  if (scaler_ && first.in("loss").has("scale")) scaler_->load_state(first.in("loss"));  // else several ranks brought it
  state_.load_state(own.in("layers"));
  wide_keys_loaded_ = own.number("wide_keys") != 0;
  for (size_t e = 0; e < tables_.size(); ++e) tables_[e]->load_state(from.in(cat("tables/", e)));
  runtime_.compute_stream().synchronize();
}

}  // namespace hctr
