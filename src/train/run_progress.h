// The numbers of a run that a checkpoint keeps besides the model: what it has reached, and where its readers are.
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
  bool finished = false;  ///< trained to its end, and the model and the summary are written
  int64_t iterations = 0, samples = 0, epochs = 0;
  int64_t evaluated_at = -1;  ///< iteration of the last evaluation
  double loss = 0;            ///< of the last step
  int64_t skipped_steps = 0, skipped_records = 0, key_bytes = 0;
  double eval_seconds = 0;
  std::map<std::string, double> metrics;         ///< of the last evaluation
  std::map<std::string, std::string> undefined;  ///< why some of them are not defined
  /// The losses that have had a sample that counts; nothing where a checkpoint of an earlier program does not say.
  std::optional<std::vector<std::string>> counted_losses = std::vector<std::string>();
  std::optional<std::string> stopped_at;
  std::optional<double> best;  ///< the best value so far of SolverSection::best_metric()
  int64_t best_iteration = -1;
  std::map<std::string, double> best_metrics;  ///< of that evaluation
  int64_t evaluations_since_best = 0;
  int64_t undefined_evaluations = 0;          ///< those where that metric was not defined
  std::vector<std::string> undefined_warned;  ///< metrics that decide something, and were not defined once
  std::vector<std::string> best_files;        ///< with early stopping: of the model at best_iteration
  Reporter::State report;
  LossSum loss_sum;  ///< since the last display
  ReaderPosition reader, eval_reader;
  std::vector<std::string> followed;  ///< with "follow": the names of all files so far, in the order of reading
  int64_t followed_bytes = -1;        ///< the size of the one in which `reader` is; -1: none
  /// The last snapshot: its iteration and files.
  int64_t snapshot_iteration = -1;
  std::vector<std::string> snapshot_files;
};

Json to_json(const RunProgress&);
/// Errors: Error(data) when `json` is not what to_json() writes.
RunProgress run_progress(const Json& json);

}  // namespace hctr
