// Reads the metrics.jsonl of a run as series of numbers.
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
  std::optional<Json> start, end;  ///< the "start" and the "end" line
  /// [field name] The numbers in "train" lines, as a curve. The x axis is the iteration, or the seconds of training for
  /// names in kOverSeconds.
  std::map<std::string, Series> training;
  std::map<std::string, Series> metrics;         ///< metrics of "eval" lines, by iteration
  std::map<std::string, int64_t> not_numbers;    ///< [metric] number of "eval" lines without a value
  std::map<std::string, std::string> undefined;  ///< [metric] last stated reason for a missing value
  /// [table][name] the counts that "table" lines state; x: iteration
  std::map<std::string, std::map<std::string, Series>> tables;
  std::vector<int64_t> resumed;  ///< iterations at which the run was resumed
  int64_t lines = 0;             ///< number of valid lines
  int64_t last_iteration = 0;
  std::string first_time, last_time;  ///< time range of the lines
  std::vector<std::string> notes;     ///< descriptions of invalid lines, with line numbers
};

/// Reads a file. Invalid lines are skipped and listed. Errors: Error(io).
MetricsLog read_metrics_log(const std::filesystem::path&);

}  // namespace hctr
