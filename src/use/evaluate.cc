// --eval: computes the metrics of a saved model.
#include <chrono>

#include "core/comm/collective_error.h"
#include "score/best_metrics.h"
#include "score/evaluation_data.h"
#include "score/evaluator.h"
#include "use/model_use.h"

namespace hctr {

EvaluationSummary evaluate(const ModelOptions& options) {
  EvaluationSummary summary;
  const auto evaluate_rank = [&](ModelOnRank& on) {
    run_on_all_ranks(on.comm(), [&] {
      if (on.comm().rank() != 0) return;
      check_evaluation_labels(on.config(), options.allow_unmatched, on.log);
      note_shared_files(on.config(), on.log);
    });
    Evaluator evaluator(on.config(), on.comm(), on.replica(), on.layout, on.log);
    const auto start = std::chrono::steady_clock::now();
    const auto result = evaluator.run(on.saved().iteration, options.stop);
    if (result) report_matches(on, result->matches, options, summary);
    if (on.comm().rank() != 0) return;
    describe_use(on, start, summary);
    summary.skipped_records = evaluator.skipped_records();
    summary.interrupted = !result;
    if (!result) return;
    summary.samples = result->samples;
    summary.metrics = result->metrics;
    summary.undefined = result->undefined;
    summary.best_possible = best_metrics(on.config());
  };
  summary.rank = use_model(options, "evaluating", [&](Config& config) { choose_data(options, config); }, evaluate_rank);
  return summary;
}

}  // namespace hctr
