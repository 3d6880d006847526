// The folder of a run: metrics.jsonl, summary.json, config.json and the final model.
//
//   metrics.jsonl   a JSON object per line: the first has "kind": "start", "schema" and "run"; then come "train",
//                   "eval" and "table" lines, and a "resume" line for each resume; the last is "end"
//   summary.json    the fields of TrainSummary, with "schema"
//   config.json     the config with every default filled in
//   run.json        command line, host, device, driver, versions, data and times of each start (run_about.h)
//   events.out...   with "tensorboard": the numbers of metrics.jsonl for TensorBoard
//   profile.json    with --profile: where the time of a step goes, with "schema"
//   plan.json       on several ranks: the owner rank of each embedding row
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

/// Version of the layout of the run folder and of the files in it that this project defines.
inline constexpr int64_t kRunSchema = 1;

/// The fields of summary.json.
Json to_json(const TrainSummary&);

class RunFolder {
 public:
  /// No folder: discards everything. For ranks other than 0.
  RunFolder() = default;
  /// Creates `wanted`, or a new folder under runs/ named after the config and the time. First moves a folder of an
  /// earlier run to `wanted`.1 (.2, ...) and logs it. `inputs`: files the run will read. The folder is locked until the
  /// RunFolder is destroyed. Errors: Error(io), also when a running job owns the folder; Error(config) when an input
  /// lies in the folder that would be moved; Error(usage) when an input has the name of a file that the run writes
  /// there.
  RunFolder(const std::filesystem::path& wanted, const std::filesystem::path& config,
            const std::vector<std::filesystem::path>& inputs, const Log& log);
  /// Resumes in the folder of run `run`: truncates metrics.jsonl to `bytes` and appends to it. Renames a metrics.jsonl
  /// or run.json of another run to <name>.1 (.2, ...), with a warning. Locked as above. Errors: Error(io).
  static RunFolder go_on(const std::filesystem::path&, const std::string& run, int64_t bytes, const Log& log);
  /// No folder, for a run without one; the run has an id all the same.
  static RunFolder unwritten();
  /// Whether a folder belongs to run `run`, according to its run.json or metrics.jsonl.
  static bool belongs_to(const std::filesystem::path&, const std::string& run);

  ~RunFolder();
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Identifies the run, also after it resumes in another folder or process.
  const std::string& run() const { return run_; }
  void set_run(std::string run) { run_ = std::move(run); }
  std::filesystem::path metrics_path() const;
  /// Size of metrics.jsonl so far.
  int64_t metrics_bytes() const { return metrics_bytes_; }
  /// Appends a line to metrics.jsonl. If it cannot be written, drops the whole line and logs a warning: training is
  /// worth more than its record.
  void add_metrics(const Json& line);
  void write_config(const Json& effective) const;
  /// Appends this start to run.json.
  void write_start(const Json& data, const Json& eval_data, const Json& start);
  /// Records in run.json how the last start ended.
  void write_end(const std::string& how) const;
  /// Iterations of models that were saved because of a stop or an error, in this or an earlier start: the next model
  /// replaces them. Stored in run.json.
  const std::vector<int64_t>& unasked_models() const { return unasked_models_; }
  /// If the file cannot be written, logs a warning.
  void set_unasked_models(std::vector<int64_t> iterations);
  void write_plan(const std::string& json) const;
  void write_profile(const Json&) const;
  void write_summary(const TrainSummary&) const;

 private:
  std::filesystem::path path_;
  std::optional<Log> log_;
  std::string run_;
  int metrics_ = -1;           // descriptor, which also holds the lock
  int64_t metrics_bytes_ = 0;  // of complete lines
  int64_t lost_lines_ = 0;     // dropped since the last line written
  Json about_;                 // run.json
  std::vector<int64_t> unasked_models_{};
};

}  // namespace hctr
