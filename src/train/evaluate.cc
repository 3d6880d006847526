// --eval: the metrics of a saved model.
#include <chrono>

#include "train/best_metrics.h"
#include "train/evaluator.h"
#include "train/model_use.h"

namespace hctr {

EvaluationSummary evaluate(const ModelOptions& options) {
  EvaluationSummary summary;
  const auto evaluate_rank = [&](LoadedModel& on) {
    Evaluator evaluator(on.config, on.runtime, on.comm, on.model, on.layout, on.log);
    const auto start = std::chrono::steady_clock::now();
    const auto result = evaluator.run(on.saved.iteration, options.stop);
    if (on.comm.rank() != 0) return;
    describe_use(on, start, summary);
    summary.skipped_records = evaluator.skipped_records();
    summary.interrupted = !result;
    if (!result) return;
    summary.samples = result->samples;
    summary.metrics = result->metrics;
    summary.best_possible = best_metrics(on.config);
  };
  summary.rank = use_model(options, "evaluating", [](Config&) {}, evaluate_rank);
  return summary;
}

}  // namespace hctr
