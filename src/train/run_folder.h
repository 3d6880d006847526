// The folder of a run: metrics.jsonl, summary.json, config.json and the final model.
//
//   metrics.jsonl   a JSON object per line: the first has "kind": "start", "schema" and "run"; then follow "train",
//                   "eval" and "table" lines, and a "resume" line for each resume; the last is "end"
//   summary.json    the fields of TrainSummary, with "schema"
//   config.json     the config with every default filled in
//   run.json        command line, host, device, driver, versions, data and times of each start (run_about.h)
//   events.out...   with "tensorboard": the values of metrics.jsonl for TensorBoard
//   profile.json    with --profile: the time of each part of a step, with "schema"
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

/// Version of the run folder's layout and of this project's own file formats in it.
inline constexpr int64_t kRunSchema = 1;

/// The fields of summary.json.
Json to_json(const TrainSummary&);

class RunFolder {
 public:
  /// No folder: discards all output. For ranks other than 0.
  RunFolder() = default;
  /// Creates `wanted`, or a new folder under runs/ named after the config and the time. If an earlier run's folder has
  /// this name, first moves it to `wanted`.1 (.2, ...) and logs this. `inputs`: the files that the run will read. The
  /// folder stays locked until the RunFolder is destroyed. Errors: Error(io), also if a running job owns the folder;
  /// Error(config) if an input is in the folder to be moved; Error(usage) if an input has the name of a file that the
  /// run writes.
  RunFolder(const std::filesystem::path& wanted, const std::filesystem::path& config,
            const std::vector<std::filesystem::path>& inputs, const Log& log);
  /// Resumes in the folder of run `run`: truncates metrics.jsonl to `bytes` and appends to it. If metrics.jsonl or
  /// run.json belongs to another run, renames it to <name>.1 (.2, ...) with a warning. The folder is locked, as by the
  /// constructor. Errors: Error(io).
  static RunFolder go_on(const std::filesystem::path&, const std::string& run, int64_t bytes, const Log& log);
  /// For a run without a folder. The run still has an id.
  static RunFolder unwritten();
  /// Whether a folder belongs to run `run`, according to run.json or metrics.jsonl.
  static bool belongs_to(const std::filesystem::path&, const std::string& run);

  ~RunFolder();
  RunFolder(RunFolder&&) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The id of the run, which stays the same when the run resumes in another folder or process.
  const std::string& run() const { return run_; }
  void set_run(std::string run) { run_ = std::move(run); }
  std::filesystem::path metrics_path() const;
  /// Bytes of metrics.jsonl written so far.
  int64_t metrics_bytes() const { return metrics_bytes_; }
  /// Appends a line to metrics.jsonl. If writing fails, drops the whole line and logs a warning, and training
  /// continues.
  void add_metrics(const Json& line);
  void write_config(const Json& effective) const;
  /// Appends this start to run.json.
  void write_start(const Json& data, const Json& eval_data, const Json& start);
  /// Records in run.json how the last start ended.
  void write_end(const std::string& how) const;
  /// Iterations of models that this or an earlier start saved because of a stop or an error. The next model replaces
  /// them. Stored in run.json.
  const std::vector<int64_t>& unasked_models() const { return unasked_models_; }
  /// Stores the iterations in run.json. If writing fails, logs a warning.
  void set_unasked_models(std::vector<int64_t> iterations);
  void write_plan(const std::string& json) const;
  void write_profile(const Json&) const;
  void write_summary(const TrainSummary&) const;

 private:
  std::filesystem::path path_;
  std::optional<Log> log_;
  std::string run_;
  int metrics_ = -1;           // file descriptor, which also holds the lock
  int64_t metrics_bytes_ = 0;  // bytes of complete lines
  int64_t lost_lines_ = 0;     // lines dropped since the last successful write
  Json about_;                 // content of run.json
  std::vector<int64_t> unasked_models_{};
};

}  // namespace hctr
