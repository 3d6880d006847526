// metrics.jsonl of a run as series of numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "report/series.h"

namespace hctr {

struct MetricsLog {
  std::optional<Json> start, end;  ///< the lines of these kinds
  /// Numbers of "train" lines by name: over iterations, those named in kOverSeconds over seconds of training.
  std::map<std::string, Series> training;
  std::map<std::string, Series> metrics;         ///< metrics of "eval" lines, over iterations
  std::map<std::string, int64_t> not_numbers;    ///< metrics of "eval" lines without a value, and how often
  std::map<std::string, std::string> undefined;  ///< the last reason, if a line states one
  std::map<std::string, std::map<std::string, Series>> tables;  ///< counts by table and name, over iterations
  std::vector<int64_t> resumed;                                 ///< iterations from which the run resumed
  int64_t lines = 0;                                            ///< whole ones
  int64_t last_iteration = 0;
  std::string first_time, last_time;  ///< times of the lines
  std::vector<std::string> notes;     ///< lines that are broken, with their numbers
};

/// Reads a file. Broken lines are skipped and noted. Errors: Error(io).
MetricsLog read_metrics_log(const std::filesystem::path&);

}  // namespace hctr
