#include "infer/evaluate_model.h"

#include <chrono>
#include <utility>

#include "core/base/expect.h"
#include "score/best_metrics.h"
#include "score/evaluation_data.h"
#include "score/evaluator.h"

namespace hctr {
namespace {

Config evaluation_config(const LoadedModel& model, const std::string& source) {
  Config config = model.config();
  if (!source.empty())
    set_evaluation_data(source, config);
  else if (config.data.eval_source.empty())
    throw Error(Kind::usage, cat("the config of ", model.saved().name,
                                 " has no eval_source: name the samples to "
                                 "evaluate"));
  config.data.cache_eval_data.most = 0;             // each batch is read once
  config.solver.export_predictions_prefix.clear();  // applies only to evaluations during training
  return config;
}

}  // namespace

void set_evaluation_data(const std::string& path, Config& config) {
  config.data.eval_source = path;
  config.data.eval_num_samples = 0;
  config.solver.max_eval_batches.reset();
  config.solver.max_eval_samples.reset();
}

EvaluationSummary evaluate_model(LoadedModel& model, const std::string& source, const std::atomic<int>* stop,
                                 const Log& log) {
  const Config config = evaluation_config(model, source);
  check_evaluation_labels(config, true, log);
  note_shared_files(config, log);
  RuntimeOptions options = model.runtime().options();
  options.row_memory = {};
  Runtime runtime(model.device(), options);
  const BatchLayout layout = batch_layout(config, config.solver.eval_batch(), runtime.device());
  Evaluator evaluator(Evaluator::InOwnMemory{runtime}, config, model.comm(), model.replica(), layout, log);
  const auto start = std::chrono::steady_clock::now();
  auto result = evaluator.run(model.saved().iteration, stop);
  EvaluationSummary summary;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  summary.device = describe(model.device());
  summary.model = model.saved().name;
  summary.iteration = model.saved().iteration;
  summary.data = config.data.eval_source;
  summary.skipped_records = evaluator.skipped_records();
  summary.interrupted = !result;
  if (!result) return summary;
  report_unmatched(result->matches, summary.data, log);
  summary.matches = std::move(result->matches);
  summary.samples = result->samples;
  summary.metrics = std::move(result->metrics);
  summary.undefined = std::move(result->undefined);
  summary.best_possible = best_metrics(config);
  return summary;
}

}  // namespace hctr
