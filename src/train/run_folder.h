// The folder a run leaves: metrics.jsonl, summary.json, config.json and the final model.
//
//   metrics.jsonl   a JSON object a line; the first has "kind": "start" and "schema", then "train", "eval" and "table",
//   last "end" summary.json    what TrainSummary holds, with "schema" config.json     the config with every default
//   filled in plan.json       on several ranks, which of them has which embedding rows final_*.model   the final model,
//   in the classic layouts
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "config/json.h"
#include "hctr/solver.h"

namespace hctr {

/// Version of the layout of the run folder and of every file in it that is ours.
inline constexpr int64_t kRunSchema = 1;

class RunFolder {
 public:
  /// Nowhere: what is written to it is dropped. Of ranks that do not speak for the run.
  RunFolder() = default;
  /// Creates `wanted`, or a new folder under runs/ named after the config and the time. Errors: Error(io).
  RunFolder(const std::filesystem::path& wanted, const std::filesystem::path& config);

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
