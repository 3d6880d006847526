#include "model/model.h"

#include <algorithm>

#include "base/error.h"
#include "device/lockstep.h"
#include "embedding/marks_file.h"
#include "embedding/sparse_file.h"
#include "ops/embedding/bag_lengths.h"

namespace hctr {
namespace {

Graph wired(const Config& config, int64_t samples) {
  Problems problems;
  Graph graph = wire(config, samples, problems);
  HCTR_EXPECT(!problems.any_error(), "a config with ", problems.errors().size(), " problems");
  return graph;
}

int key_bytes(const SolverSection& solver) { return solver.input_key_type == KeyType::i32 ? 4 : 8; }

}  // namespace

Model::Model(const Config& config, Runtime& runtime, Communicator& comm, int64_t samples, int64_t eval_samples,
             int ring_slots, const std::vector<Placement>& placements)
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
  bool fp16_travels = false;
  for (size_t e = 0; e < config.embeddings.size(); ++e) {
    const size_t input = train_graph_.embedding_inputs[e];
    const EmbeddingSection& section = config.embeddings[e].section;
    const Placement without = Placement::without_plan(section.placement_rule(), section.identity_by_slot(),
                                                      shape.tables[input].slots, comm.size());
    const Placement& placement = placements.empty() ? without : placements.at(e);
    TableSpec spec = section.table_spec(config.optimizer, comm.rank(), placement);
    if (config.solver.compatibility.schedule_sets_embedding_rates) spec.optimizer.rate_factor = 1;
    const bool everywhere = placement.everywhere(comm.size());
    if (everywhere) spec.replication.of = Replication::Of::all;
    HCTR_EXPECT(comm.size() == 1 || everywhere == (spec.replication.of == Replication::Of::all), "table '", spec.name,
                "' has owners and is on every rank");
    spec.exchange =
        everywhere
            ? DType::f32
            : section.hparam.exchange_precision.value_or(config.solver.exchange());  // its vectors stay where they are
    fp16_travels = fp16_travels || (spec.exchange == DType::f16 && comm.size() > 1);
    spec.replication.most_rows =
        std::min(spec.replication.most_rows, kMostRows / config.solver.batchsize) * config.solver.batchsize;
    spec.slots = shape.tables[input].slots;
    if (!section.pooled())
      for (int64_t s = 0; s < spec.slots; ++s) spec.slot_places.push_back(config.data.sparse[input].kept_nnz(s));
    spec.batch = config.solver.batchsize;
    spec.samples = samples;
    spec.key_capacity = shape.tables[input].key_capacity;
    spec.eval_samples = eval_samples;
    spec.eval_key_capacity = eval_shape.tables[input].key_capacity;
    std::vector<int64_t> slot_keys;
    for (int64_t s = 0; s < spec.slots; ++s) slot_keys.push_back(config.data.sparse[input].kept_nnz(s));
    tables_.push_back(make_embedding(runtime, comm, placement, std::move(spec), slot_keys, ring_slots,
                                     {train_.embedding_output(e), evaluation_.embedding_output(e)}));
    sent_.emplace_back(runtime.device());
    shared_.emplace_back(runtime.device());
  }
  if (const Precision& precision = config.solver.mixed_precision; precision.may_overflow())
    scaler_.emplace(precision, runtime);
  else if (fp16_travels)
    scaler_.emplace(Precision::scaled(), runtime);
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

void Model::confirm_capacity(int slot) const {
  for (const auto& table : tables_) table->confirm_capacity(slot);
}

void Model::enforce_limit(int slot) {
  for (const auto& table : tables_) table->enforce_limit(slot);
}

bool Model::may_refuse() const {
  return std::any_of(config_.embeddings.begin(), config_.embeddings.end(), [](const EmbeddingEntry& embedding) {
    return embedding.section.hparam.limited() || embedding.section.direct();
  });
}

void Model::check_keys() const {
  for (const auto& table : tables_) table->check_keys();
}

template <class Body>
void Model::for_each_table(Context& ctx, const Body& body) {
  if (comm_.size() > 1) {  // what ranks say to each other has an order of its own
    for (size_t e = 0; e < tables_.size(); ++e) body(ctx, e);
    return;
  }
  Lockstep tables(ctx);
  for (size_t e = 0; e < tables_.size(); ++e) {
    Context own = tables.next();
    body(own, e);
  }
  tables.run();
}

void Model::prepare(Context& ctx, int slot, const BatchTensors& batch) {
  for_each_table(ctx, [&](Context& own, size_t e) {
    const size_t input = train_graph_.embedding_inputs[e];
    tables_[e]->prepare(own, slot, batch.keys[input], batch.offsets[input]);
  });
}

void Model::train_step(Context& ctx, int slot, const BatchTensors& batch, const Network::Binding& binding) {
  if (scaler_) scaler_->begin(ctx, batch.state);
  Context exchange = side_stream_.after(ctx);
  const auto forward = [&](Context& own, size_t e) { tables_[e]->forward(own, slot, train_.embedding_output(e)); };
  if (comm_.size() == 1) for_each_table(ctx, forward);
  for (size_t e = 0; e < tables_.size() && comm_.size() > 1; ++e) {
    tables_[e]->send_vectors(exchange, slot);
    if (!tables_[e]->has_rows_everywhere()) sent_[e].record(exchange.stream());
  }
  for (size_t e = 0; e < tables_.size() && comm_.size() > 1; ++e) {  // behind what other ranks wait for
    if (!tables_[e]->has_rows_everywhere()) continue;
    tables_[e]->fill_local_vectors(exchange, slot, train_.embedding_output(e));
    sent_[e].record(exchange.stream());
  }
  write_lengths(ctx, batch, train_);
  train_.forward(ctx, binding, [&](size_t node) {
    if (comm_.size() == 1) return;
    for (const size_t e : train_.first_reads(node))
      if (!tables_[e]->has_rows_everywhere())
        tables_[e]->fill_local_vectors(ctx, slot, train_.embedding_output(e));  // zeros, of which there are few
    for (const size_t e : train_.first_reads(node)) {
      sent_[e].make_wait(ctx.stream());
      forward(ctx, e);
    }
  });
  add_penalties(ctx, train_);
  exchange = side_stream_.after(ctx);
  comm_.all_reduce(exchange, train_.loss(), Reduce::sum);
  auto regularizers = train_.regularizers();
  for (auto& regularizer : regularizers) regularizer.lambda *= penalty_factors().gradient;
  const auto send_gradients = [&](size_t node) {
    const auto& complete = train_.first_reads(node);
    if (complete.empty()) return;
    exchange = side_stream_.after(ctx);
    for (const size_t e : complete) {
      const Tensor gradient = train_.embedding_gradient(e);
      if (tables_[e]->has_rows_everywhere())
        gradients_.sum_on_side_stream(
            exchange, [&](Context& own) { tables_[e]->sum_gradients(own, slot, gradient); }, shared_[e]);
      const DType travels_as = comm_.size() > 1 ? tables_[e]->spec().exchange : DType::f32;
      tables_[e]->send_gradients(exchange, slot, gradient,
                                 scaler_ ? scaler_->search(travels_as) : ops::OverflowSearch{});
    }
  };
  const auto sum_gradients = [&](size_t node) {
    for (const auto& regularizer : regularizers)
      weights_.add_penalty_gradients(ctx, node, regularizer, config_.solver.batchsize, comm_.size());
    gradients_.node_done(ctx, node);
  };
  train_.backward(ctx, binding, {send_gradients, sum_gradients});
  if (scaler_)
    side_stream_.join(ctx);  // gradients that leave have been searched for overflow; what comes is not waited for
  for_each_table(exchange, [&](Context& own, size_t e) {
    tables_[e]->receive_gradients(own, slot, train_.embedding_gradient(e));
  });
  if (scaler_) {
    gradients_.join(ctx);
    ops::find_overflow(ctx, weights_.all_gradients(), scaler_->search());
    scaler_->end(ctx, comm_, batch.state);
  }
  exchange = side_stream_.after(ctx);
  for_each_table(exchange, [&](Context& own, size_t e) {
    if (tables_[e]->has_rows_everywhere()) shared_[e].make_wait(own.stream());
    tables_[e]->update(own, slot, train_.embedding_gradient(e));
  });
  gradients_.join(ctx);  // here, so that the sum over ranks of the first layers' gradients runs beside the tables
  weights_.update(ctx);
  side_stream_.join(ctx);
}

void Model::evaluate(Context& ctx, const BatchTensors& batch, const Network::Binding& binding) {
  for_each_table(ctx, [&](Context& own, size_t e) {
    const size_t input = eval_graph_.embedding_inputs[e];
    tables_[e]->lookup(own, batch.keys[input], batch.offsets[input], evaluation_.embedding_output(e));
  });
  write_lengths(ctx, batch, evaluation_);
  evaluation_.forward(ctx, binding);
  // The penalty belongs to the loss in evaluation too; its size is that of a training batch, as the weights were
  // trained.
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

std::vector<std::filesystem::path> Model::save(const std::string& prefix, int64_t iteration) {
  comm_.barrier();  // from here on ranks wait as long as writing takes
  std::vector<std::filesystem::path> files = {cat(prefix, "_dense_", iteration, ".model")};
  const bool writes = comm_.rank() == 0;  // what all ranks have alike
  if (writes) weights_.save(files[0], runtime_.compute_stream());
  for (size_t e = 0; e < tables_.size(); ++e) {
    files.emplace_back(cat(prefix, e, "_sparse_", iteration, ".model"));
    if (writes)
      save_sparse(files.back(), *tables_[e], key_bytes(config_.solver));
    else
      tables_[e]->export_rows(false, [](const RowBlock&) {});  // to rank 0
    if (tables_[e]->spec().policy.keeps_marks()) files.push_back(marks_path_beside(files.back()));
  }
  if (!state_.empty()) {
    files.push_back(LayerState::path_beside(files[0]));
    if (writes) state_.save(files.back(), runtime_.compute_stream());
  }
  comm_.barrier();  // whoever goes on finds the files whole
  return files;
}

void Model::load() {
  // Whether marks are loaded is for one rank to say, for all must load them.
  const auto with_marks = [&](const std::string& file) {
    return comm_.share(has_marks(file) ? "yes" : "", 0) == "yes";
  };
  if (const std::string& dense = config_.solver.dense_model_file; !dense.empty()) {
    Context ctx(runtime_, runtime_.compute_stream());
    weights_.load(dense, ctx);
    if (const auto path = LayerState::path_beside(dense); !state_.empty() && std::filesystem::exists(path))
      state_.load(path, runtime_.compute_stream());
  }
  for (size_t e = 0; e < config_.solver.sparse_model_file.size(); ++e)
    load_sparse(config_.solver.sparse_model_file[e], *tables_[e], key_bytes(config_.solver),
                with_marks(config_.solver.sparse_model_file[e]));
}

}  // namespace hctr
