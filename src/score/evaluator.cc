#include "score/evaluator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace hctr {
namespace {

ScorerOptions evaluation_options(const Config& config, const ReaderPosition& from) {
  const SolverSection& solver = config.solver;
  const bool continues = solver.compatibility.evaluation_continues;
  const auto asked = [&](auto which) {
    const auto& metrics = solver.eval_metrics.metrics;
    return std::any_of(metrics.begin(), metrics.end(), which);
  };
  ScorerOptions options{.source = evaluation_source(config.data),
                        .batches = solver.eval_batches(),
                        .continues = continues && solver.eval_batches(),
                        .losses = asked([](const Metric& metric) { return !metric.type->measure; }),
                        .predictions = asked([](const Metric& metric) { return metric.type->measure != nullptr; }) ||
                                       !solver.export_predictions_prefix.empty(),
                        .cached = continues ? 0 : config.data.cache_eval_data.most,
                        .match_keys = true};
  if (options.continues) options.from = from;
  if (asked([](const Metric& metric) { return metric.type->of_groups; }))
    for (size_t i = 0; i < config.data.sparse.size(); ++i)
      if (config.data.sparse[i].top == solver.group_by.input) options.groups = {i, solver.group_by.slot};
  return options;
}

ScorerOptions options_in_own_memory(const Config& config, Runtime& runtime) {
  ScorerOptions options = evaluation_options(config, {});
  options.own_memory_in = &runtime;
  return options;
}

ScorerOptions given_options(const Config& config) {
  ScorerOptions options = evaluation_options(config, {});
  return {.losses = options.losses, .predictions = options.predictions, .groups = options.groups, .given = true};
}

}  // namespace

Evaluator::Evaluator(const Config& config, Communicator& comm, Replica& model, const BatchLayout& layout,
                     const Log& log, const ReaderPosition& from)
    : Evaluator(config, comm, model, layout, log, evaluation_options(config, from)) {
  export_prefix_ = config.solver.export_predictions_prefix;
}

Evaluator::Evaluator(InOwnMemory in, const Config& config, Communicator& comm, Replica& model,
                     const BatchLayout& layout, const Log& log)
    : Evaluator(config, comm, model, layout, log, options_in_own_memory(config, in.runtime)) {}

Evaluator::Evaluator(OfGiven, const Config& config, Communicator& comm, Replica& model, const BatchLayout& layout,
                     const Log& log)
    : Evaluator(config, comm, model, layout, log, given_options(config)) {}

Evaluator::Evaluator(const Config& config, Communicator& comm, Replica& model, const BatchLayout& layout,
                     const Log& log, const ScorerOptions& options)
    : comm_(comm),
      log_(log),
      tasks_(model.tasks()),
      metrics_(config.solver.eval_metrics),
      sample_weight_(config.data.sample_weight.column),
      options_(options),
      scorer_(config, comm, model, layout, options_, log) {}

std::optional<Evaluator::Result> Evaluator::run(int64_t steps, const std::atomic<int>* stop) {
  scores_.clear();
  loss_sums_.clear();
  Result result;
  const bool exports = !export_prefix_.empty(), writes = exports && comm_.rank() == 0;
  if (writes) export_or_warn([&] { export_.emplace(export_prefix_, steps, tasks_); });
  const bool whole = scorer_.run(steps, stop, [&](ScoredBatch& batch) {
    add(batch, result);
    if (!exports) return;
    const ScoredRows rows = rows_on_rank_0(comm_, batch);
    if (export_) export_or_warn([&] { export_->add(rows); });
  });
  if (whole && export_) export_or_warn([&] { export_->finish(); });
  export_.reset();
  if (!whole) return std::nullopt;
  if (result.samples == 0) return result;
  add_losses(result);
  add_merged_values(result);
  result.matches = scorer_.matches();
  return result;
}

void Evaluator::export_or_warn(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.kind() != Kind::io) throw;
    export_.reset();
    log_.warning("the predictions of this evaluation are not exported: ", error.what());
  }
}

void Evaluator::add(const ScoredBatch& batch, Result& total) {
  loss_sums_.resize(batch.losses.size());
  for (size_t l = 0; l < batch.losses.size(); ++l)
    loss_sums_[l] += static_cast<double>(batch.losses[l]) * static_cast<double>(batch.samples);
  for (size_t t = 0; t < batch.predictions.size(); ++t) {
    if (scores_.size() == t) scores_.emplace_back(metrics_, batch.predictions[t].row_elements());
    scores_[t].add(batch.predictions[t], batch.labels[t], batch.groups, batch.rows);
  }
  total.samples += batch.samples;
}

void Evaluator::add_losses(Result& result) {
  if (loss_sums_.empty()) return;
  std::vector<CountedSamples::Loss> losses;
  for (const CountedSamples::Loss& loss : scorer_.counted()) losses.push_back(over_all_ranks(loss, comm_));
  const bool any = std::any_of(losses.begin(), losses.end(), [](const auto& loss) { return loss.counted; });
  for (size_t l = 0; l < loss_sums_.size(); ++l) {
    const std::string name = l == 0 ? "AverageLoss" : "AverageLoss/" + tasks_[l - 1];
    const CountedSamples::Loss& loss = losses[l == 0 ? 0 : l - 1];
    const bool counts = l == 0 ? any : loss.counted;
    double& value = result.metrics[name] = loss_sums_[l] / static_cast<double>(result.samples);
    if (counts && std::isfinite(value)) continue;
    result.undefined[name] = counts ? cat("the loss of a batch is ", std::isnan(value) ? "not a number" : "infinite")
                                    : why_none_counts(loss, sample_weight_);
    value = std::numeric_limits<double>::quiet_NaN();  // no sample contributes, or the sum is not finite: no mean
  }
}

void Evaluator::note_samples_without_group() {
  const SampleFacts& facts = scores_.front().facts();
  if (!options_.groups || facts.without_group == 0 || std::exchange(noted_groups_, true)) return;
  log_.info("note: metrics of groups exclude ", facts.without_group, " of ", facts.samples,
            " evaluation samples without a group: their slot named by \"group_by\" is empty.");
}

void Evaluator::add_merged_values(Result& result) {
  for (size_t t = 0; t < scores_.size(); ++t) {
    if (comm_.size() > 1) {
      const auto states = comm_.gather(comm_.rank() == 0 ? "" : scores_[t].state(), 0);
      for (size_t r = 1; r < states.size(); ++r) scores_[t].merge(states[r]);
    }
    if (t == 0 && comm_.rank() == 0) note_samples_without_group();
    for (const auto& [name, value] : scores_[t].values()) {
      double merged = value;
      const std::string of_rank_0 = comm_.broadcast({reinterpret_cast<const char*>(&merged), sizeof merged}, 0);
      std::memcpy(&merged, of_rank_0.data(), sizeof merged);
      result.metrics[t == 0 ? name : name + "/" + tasks_[t]] = merged;
    }
    for (const auto& [name, why] : scores_[t].undefined())
      if (comm_.rank() == 0) result.undefined[t == 0 ? name : name + "/" + tasks_[t]] = why;
  }
}

}  // namespace hctr
