// The progress of a run that a checkpoint stores with the model: counters, metrics and reader positions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/json.h"
#include "formats/reader/reader_position.h"
#include "train/reporter.h"
#include "train/step_pipeline.h"

namespace hctr {

struct RunProgress {
  bool finished = false;  ///< whether training has reached its end, and the model and summary are written
  int64_t iterations = 0, samples = 0, epochs = 0;
  int64_t evaluated_at = -1;  ///< iteration of the last evaluation
  double loss = 0;            ///< loss of the last step
  int64_t skipped_steps = 0, skipped_records = 0, key_bytes = 0;
  double eval_seconds = 0;
  std::map<std::string, double> metrics;         ///< metrics of the last evaluation
  std::map<std::string, std::string> undefined;  ///< [metric] the reason why the metric is undefined
  /// The losses that have had a sample with nonzero weight. None if an older version wrote the checkpoint.
  std::optional<std::vector<std::string>> counted_losses = std::vector<std::string>();
  std::optional<std::string> stopped_at;
  std::optional<double> best;  ///< the best value so far of SolverSection::best_metric()
  int64_t best_iteration = -1;
  std::map<std::string, double> best_metrics;  ///< metrics of the best evaluation
  int64_t evaluations_since_best = 0;
  int64_t undefined_evaluations = 0;          ///< number of evaluations in which the best metric was undefined
  std::vector<std::string> undefined_warned;  ///< undefined metrics that control training and that have been warned of
  std::vector<std::string> best_files;        ///< with early stopping: files of the model at best_iteration
  Reporter::State report;
  LossSum loss_sum;  ///< losses since the last display
  ReaderPosition reader, eval_reader;
  std::vector<std::string> followed;  ///< with "follow": the names of all files so far, in reading order
  int64_t followed_bytes = -1;        ///< size of the file that `reader` is reading; -1: none
  /// The last snapshot: its iteration and files.
  int64_t snapshot_iteration = -1;
  std::vector<std::string> snapshot_files;
};

Json to_json(const RunProgress&);
/// Errors: Error(data) if to_json() did not write `json`.
RunProgress run_progress(const Json& json);

}  // namespace hctr
