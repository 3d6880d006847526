// Evaluation: the metrics of the model after the finished steps, on the evaluation set from its start.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "score/prediction_export.h"
#include "score/scorer.h"
#include "score/scores.h"

namespace hctr {

class Evaluator {
 public:
  /// `from`: where evaluations continue, if each continues where the previous one ended. Errors: those of the Reader
  /// for config.data.eval_source.
  Evaluator(const Config&, Runtime&, Communicator&, Replica&, const BatchLayout&, const Log&,
            const ReaderPosition& from = {});
  /// In memory of its own, on one rank: ScorerOptions::beside.
  struct InOwnMemory {};
  Evaluator(InOwnMemory, const Config&, Runtime&, Communicator&, Replica&, const BatchLayout&, const Log&);
  /// Evaluates given samples: without the config's eval_source, its limits on batches and its exports.
  struct OfGiven {};
  Evaluator(OfGiven, const Config&, Runtime&, Communicator&, Replica&, const BatchLayout&, const Log&);

  struct Result {
    /// The metrics of eval_metrics, by name. With several losses, a metric of predictions has its own name for the
    /// first loss and <name>/<top> for each other one; AverageLoss is the weighted sum, AverageLoss/<top> that of each
    /// loss.
    std::map<std::string, double> metrics;
    /// Reasons of undefined metrics, on rank 0.
    std::map<std::string, std::string> undefined;
    int64_t samples = 0;
    std::vector<SlotMatches> matches;  ///< how many keys have rows
  };
  /// `steps`: training steps done so far. Waits for queued training steps. When `stop` becomes other than 0 on a rank,
  /// all leave the evaluation, and the result is empty; it may be null. With export_predictions_prefix also writes the
  /// files of predictions; where the file system fails, warns. Errors: those of a rank's reader on every rank.
  std::optional<Result> run(int64_t steps, const std::atomic<int>* stop = nullptr);

  /// Scorer::give().
  void give(const GivenSamples& samples) { scorer_.give(samples); }
  /// Scorer::record_again().
  void record_again() { scorer_.record_again(); }
  /// Where the next evaluation starts.
  ReaderPosition position() const { return options_.continues ? scorer_.reader().position() : ReaderPosition{}; }
  DataFingerprint data_fingerprint() const { return scorer_.reader().fingerprint(); }
  /// Bad records that the last evaluation skipped.
  int64_t skipped_records() const { return scorer_.reader().skipped_records(); }

 private:
  Evaluator(const Config&, Runtime&, Communicator&, Replica&, const BatchLayout&, const Log&, const ScorerOptions&);
  void add(const ScoredBatch&, Result&);
  /// Calls body() unless the export has failed, and warns when it fails now.
  void export_or_warn(const std::function<void()>& body);
  /// Adds the mean of each loss, on every rank.
  void add_losses(Result&);
  /// Once; on rank 0.
  void note_samples_without_group();
  /// Adds the metrics over all ranks, on every rank.
  void add_merged_values(Result&);

  Communicator& comm_;
  const Log& log_;
  std::string export_prefix_;               // empty: nothing is exported
  std::optional<PredictionExport> export_;  // export of the running evaluation, on rank 0
  std::vector<std::string> tasks_;
  MetricList metrics_;
  std::string sample_weight_;  // the column
  ScorerOptions options_;
  bool noted_groups_ = false;
  Scorer scorer_;
  std::vector<Scores> scores_;     // per task, over this rank's samples of the current evaluation
  std::vector<double> loss_sums_;  // losses as in ScoredBatch::losses
};

}  // namespace hctr
