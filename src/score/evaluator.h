// Evaluates the model after the finished steps: computes metrics on the evaluation set.
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
  /// `from`: position in the evaluation set at which the first evaluation starts, if each evaluation continues where
  /// the previous one ended; otherwise ignored. Errors: those of the Reader for config.data.eval_source.
  Evaluator(const Config&, Communicator&, Replica&, const BatchLayout&, const Log&, const ReaderPosition& from = {});
  /// Selects the constructor of an evaluator with its own activation memory, on one rank
  /// (ScorerOptions::own_memory_in).
  struct InOwnMemory {
    Runtime& runtime;
  };
  Evaluator(InOwnMemory, const Config&, Communicator&, Replica&, const BatchLayout&, const Log&);
  /// Selects the constructor of an evaluator for the samples that give() sets. Such an evaluator ignores the config's
  /// eval_source, batch limits and prediction exports.
  struct OfGiven {};
  Evaluator(OfGiven, const Config&, Communicator&, Replica&, const BatchLayout&, const Log&);

  struct Result {
    /// The values of "eval_metrics" by name. With several losses, a metric of predictions is named <name> for the first
    /// loss and <name>/<top> for each further loss. AverageLoss is the weighted sum, AverageLoss/<top> the mean of each
    /// loss.
    std::map<std::string, double> metrics;
    /// The reasons of undefined metrics; only on rank 0.
    std::map<std::string, std::string> undefined;
    int64_t samples = 0;
    std::vector<SlotMatches> matches;  ///< [slot] number of keys that have rows
  };
  /// Evaluates once. `steps`: number of finished training steps. Waits for queued training steps. If `*stop` becomes
  /// nonzero on any rank, all ranks stop and the result is empty; `stop` may be null. If export_predictions_prefix is
  /// set, also writes prediction files; a file system error is only a warning. Errors: an error of any rank's reader is
  /// thrown on all ranks.
  std::optional<Result> run(int64_t steps, const std::atomic<int>* stop = nullptr);

  /// See Scorer::give().
  void give(const GivenSamples& samples) { scorer_.give(samples); }
  /// See Scorer::record_again().
  void record_again() { scorer_.record_again(); }
  /// The start position of the next evaluation.
  ReaderPosition position() const { return options_.continues ? scorer_.reader().position() : ReaderPosition{}; }
  DataFingerprint data_fingerprint() const { return scorer_.reader().fingerprint(); }
  /// Number of bad records that the last evaluation skipped.
  int64_t skipped_records() const { return scorer_.reader().skipped_records(); }

 private:
  Evaluator(const Config&, Communicator&, Replica&, const BatchLayout&, const Log&, const ScorerOptions&);
  void add(const ScoredBatch&, Result&);
  /// Calls body(), which writes to the export. If writing fails, warns and ends this evaluation's export.
  void export_or_warn(const std::function<void()>& body);
  /// Adds the mean of each loss to the result. Collective.
  void add_losses(Result&);
  /// Logs the note once, on rank 0.
  void note_samples_without_group();
  /// Adds the metrics over all ranks to the result. Collective.
  void add_merged_values(Result&);

  Communicator& comm_;
  const Log& log_;
  std::string export_prefix_;               // empty: no export
  std::optional<PredictionExport> export_;  // the running evaluation's export, on rank 0
  std::vector<std::string> tasks_;
  MetricList metrics_;
  std::string sample_weight_;  // name of the weight column
  ScorerOptions options_;
  bool noted_groups_ = false;
  Scorer scorer_;
  std::vector<Scores> scores_;     // [losses] scores of this rank's samples in the running evaluation
  std::vector<double> loss_sums_;  // [losses] sums of ScoredBatch::losses, each times the samples of its batch
};

}  // namespace hctr
