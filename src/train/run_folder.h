// The folder a run leaves: metrics.jsonl, summary.json, config.json and the final model.
//
//   metrics.jsonl   a JSON object a line: the first has "kind": "start", "schema" and "run", then "train", "eval" and
//                   "table" lines, and a "resume" line where the run went on from a checkpoint, the last "end"
//   summary.json    the fields of TrainSummary, with "schema"
//   config.json     the config with every default filled in
//   run.json        command line, host, device, driver, versions, data and times of each start (run_about.h)
//   events.out...   with "tensorboard": the numbers of metrics.jsonl for TensorBoard
//   profile.json    with --profile: where the time of a step goes, with "schema"
//   plan.json       on several ranks: which rank has which embedding rows
//   final_*.model   the final model, in the classic layouts
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/base/log.h"
#include "hctr/solver.h"

namespace hctr {

/// Version of the layout of the run folder and of every file in it that is ours.
inline constexpr int64_t kRunSchema = 1;

/// The fields of summary.json.
Json to_json(const TrainSummary&);

class RunFolder {
 public:
  /// No folder: drops what is written to it. For ranks other than 0.
  RunFolder() = default;
  /// Creates `wanted`, or a new folder under runs/ named after the config and the time. A folder that holds an earlier
  /// run is moved to `wanted`.1 (.2, ...) first, and the log says so. `inputs`: files the run will read. The folder is
  /// locked until the RunFolder is destroyed. Errors: Error(io), also when a run that has not ended owns the folder;
  /// Error(config) when an input lies in the folder that would be moved; Error(usage) when it has the name of a file
  /// that the run writes there.
  RunFolder(const std::filesystem::path& wanted, const std::filesystem::path& config,
            const std::vector<std::filesystem::path>& inputs, const Log& log);
  /// Goes on in the folder of run `run`: cuts metrics.jsonl to its first `bytes` and appends to it. A metrics.jsonl or
  /// run.json that is not of this run is renamed to <name>.1 (.2, ...), with a warning. Locked as above. Errors:
  /// Error(io).
  static RunFolder go_on(const std::filesystem::path&, const std::string& run, int64_t bytes, const Log& log);
  /// No folder, for a run that has none: it has an id all the same.
  static RunFolder unwritten();
  /// Whether a folder is that of run `run`, as its run.json or metrics.jsonl says.
  static bool belongs_to(const std::filesystem::path&, const std::string& run);

  ~RunFolder();
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Identifies the run, also when it goes on in another folder or process.
  const std::string& run() const { return run_; }
  void set_run(std::string run) { run_ = std::move(run); }
  std::filesystem::path metrics_path() const;
  /// Bytes of metrics.jsonl so far.
  int64_t metrics_bytes() const { return metrics_bytes_; }
  /// Appends a line to metrics.jsonl. A line that cannot be written is left out whole and warned of: training is worth
  /// more than its record.
  void add_metrics(const Json& line);
  void write_config(const Json& effective) const;
  /// Appends this start to run.json.
  void write_start(const Json& data, const Json& eval_data, const Json& start);
  /// Notes in run.json how the last start ended.
  void write_end(const std::string& how) const;
  /// Iterations of models that a stop or an error has made this run save, now or in an earlier start: the next model
  /// replaces them. run.json keeps them.
  const std::vector<int64_t>& unasked_models() const { return unasked_models_; }
  /// A file that cannot be written is warned of.
  void set_unasked_models(std::vector<int64_t> iterations);
  void write_plan(const std::string& json) const;
  void write_profile(const Json&) const;
  void write_summary(const TrainSummary&) const;

 private:
  std::filesystem::path path_;
  std::optional<Log> log_;
  std::string run_;
  int metrics_ = -1;           // descriptor, which also holds the lock
  int64_t metrics_bytes_ = 0;  // of whole lines
  int64_t lost_lines_ = 0;     // since the last one that could be written
  Json about_;                 // run.json
  std::vector<int64_t> unasked_models_{};
};

}  // namespace hctr
