// The folder a run leaves: metrics.jsonl, summary.json, config.json and the final model.
//
//   metrics.jsonl   a JSON object a line: the first has "kind": "start" and "schema", then "train", "eval" and "table"
//                   lines, the last "end"
//   summary.json    the fields of TrainSummary, with "schema"
//   config.json     the config with every default filled in
//   plan.json       on several ranks: which rank has which embedding rows
//   final_*.model   the final model, in the classic layouts
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "config/json.h"
#include "hctr/solver.h"

namespace hctr {

/// Version of the layout of the run folder and of every file in it that is ours.
inline constexpr int64_t kRunSchema = 1;

class RunFolder {
 public:
  /// No folder: drops what is written to it. For ranks other than 0.
  RunFolder() = default;
  /// Creates `wanted`, or a new folder under runs/ named after the config and the time. A folder that holds an earlier
  /// run is moved to `wanted`.1 (.2, ...) first, and the log says so. `inputs`: files the run will read. Errors:
  /// Error(io); Error(config) when an input lies in the folder that would be moved.
  RunFolder(const std::filesystem::path& wanted, const std::filesystem::path& config,
            const std::vector<std::filesystem::path>& inputs, const Log& log);

  const std::filesystem::path& path() const { return path_; }
  /// Appends a line to metrics.jsonl and flushes it. Errors: Error(io).
  void add_metrics(const Json& line);
  void write_config(const Json& effective) const;
  void write_plan(const std::string& json) const;
  void write_summary(const TrainSummary&) const;

 private:
  std::filesystem::path path_;
  std::ofstream metrics_;
};

}  // namespace hctr
