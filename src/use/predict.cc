// --predict: writes the scores of a saved model.
#include <chrono>

#include "core/base/progress.h"
#include "core/comm/collective_error.h"
#include "infer/prediction_source.h"
#include "use/model_use.h"
#include "use/score_writer.h"

namespace hctr {
namespace {

/// Collects the scores of all ranks, and writes them on rank 0.
class Prediction {
 public:
  Prediction(ModelOnRank& on, const PredictOptions& options)
      : on_(on), options_(options), scorer_(on.config(), on.comm(), on.replica(), on.layout, scoring(), on.log) {}

  /// Collective. Returns false if a stop was requested; no file is written then.
  bool run(PredictionSummary& summary) {
    const bool first = on_.comm().rank() == 0;
    run_on_all_ranks(on_.comm(), [&] {
      if (first) open();
    });
    Progress progress(options_.surroundings.progress, "Scoring", "rows", scorer_.reader().samples());
    const auto write = [&](ScoredBatch& batch) {
      const ScoredRows rows = rows_on_rank_0(on_.comm(), batch);
      if (first) {
        writer_->write(rows);
        summary.rows += rows.rows;
        progress.update(summary.rows);
      }
    };
    // While rank 0 writes, the other ranks wait in a barrier without a timeout.
    const bool whole = scorer_.run(on_.saved().iteration, options_.stop, [&](ScoredBatch& batch) {
      const auto meet = [&] {
        if (on_.comm().size() > 1) on_.comm().barrier();
      };
      try {
        write(batch);
      } catch (...) {
        meet();
        throw;
      }
      meet();
    });
    progress.clear();
    if (whole) report_matches(on_, scorer_.matches(), options_, summary);
    run_on_all_ranks(on_.comm(), [&] {
      if (first && whole) writer_->finish();
    });
    summary.skipped_records = scorer_.reader().skipped_records();
    return whole;
  }

 private:
  ScorerOptions scoring() const {
    Source source = prediction_source(on_.config());
    source.keep = options_.keep;
    return {.source = source, .losses = false, .check_labels = false, .match_keys = true};
  }
  void open() {
    std::vector<int64_t> scores;
    for (const Tensor& prediction : on_.replica().predictions(Phase::evaluate))
      scores.push_back(prediction.row_elements());
    ScoreColumns columns = score_columns(on_.replica().tasks(), scores, scorer_.reader().has_labels());
    columns.kept = options_.keep;
    if (options_.out != "-") remove_parts_of_dead_processes(options_.out);
    writer_ = open_scores(options_.out, columns, options_.rows);
  }

  ModelOnRank& on_;
  const PredictOptions& options_;
  Scorer scorer_;
  std::unique_ptr<ScoreWriter> writer_;
};

}  // namespace

PredictionSummary predict(const PredictOptions& options) {
  PredictionSummary summary;
  expect_score_file(options.out);
  const auto all_rows = [&](Config& config) {
    choose_data(options, config);
    config.solver.max_eval_batches.reset();
    config.solver.max_eval_samples.reset();
  };
  const auto predict_rank = [&](ModelOnRank& on) {
    Prediction prediction(on, options);
    const auto start = std::chrono::steady_clock::now();
    PredictionSummary of_rank;
    of_rank.interrupted = !prediction.run(of_rank);
    if (on.comm().rank() != 0) return;
    summary = of_rank;
    describe_use(on, start, summary);
  };
  summary.rank = use_model(options, "predicting", all_rows, predict_rank, options.out == "-" ? "" : options.out);
  return summary;
}

}  // namespace hctr
