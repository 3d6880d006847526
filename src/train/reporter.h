// Reports a run to users (progress bar, log lines) and to programs (metrics.jsonl, a callback, TensorBoard event files,
// a Prometheus text file).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/log.h"
#include "core/base/progress.h"
#include "score/evaluator.h"
#include "train/event_file.h"
#include "train/progress_line.h"
#include "train/prometheus_file.h"
#include "train/run_folder.h"

namespace hctr {

/// The consumers of metrics in addition to metrics.jsonl.
struct ReporterOptions {
  /// Receives each line of metrics.jsonl without its newline. If set, the metrics are not logged.
  std::function<void(std::string_view line)> lines{};
  bool tensorboard = false;            ///< whether to write event files in the run folder
  std::filesystem::path prometheus{};  ///< path of the Prometheus text file; empty: none
  ShowProgress progress{};             ///< null: no progress bar
  bool silent = false;                 ///< true: reports nothing, for ranks other than 0
};

/// The trainer's metrics at a display.
struct TrainedFigures {
  int64_t iteration = 0, samples = 0;
  double loss = 0, mean_loss = 0;  ///< loss: of the last step; mean_loss: over the samples since the last display
  double learning_rate = 0;
  std::optional<double> epoch{};  ///< none if the size of the set is unknown
  /// seconds that steps have waited for data in this process
  double reader_seconds = 0;
  std::optional<int64_t> gpu_memory{}, host_memory{};  ///< bytes
  std::optional<double> reads_from_gpu{};              ///< see DisplayFigures
  std::optional<double> rows_from_disk{};              ///< see DisplayFigures
  double disk_seconds = 0;                             ///< seconds that steps have waited for rows from disk
  std::optional<int> look_ahead{};                     ///< look-ahead depth in batches; none if no rows can be on disk
};

class Reporter {
 public:
  using TableCounts = std::map<std::string, std::map<std::string, int64_t>>;  // counts of each table, by name
  /// `total_samples`: samples that the run will train on, for the remaining time; 0: unknown. `iteration`: the first
  /// iteration of this process. Without a run folder, writes no files in it. Errors: Error(io) if a file of the options
  /// cannot be written.
  Reporter(const Log&, RunFolder&, const ReporterOptions&, int64_t total_samples, int64_t iteration = 0);
  /// The totals so far, for a resumed run.
  struct State {
    double seconds = 0;
    int64_t samples = 0, iteration = 0;  // totals at the last display
    TableCounts tables;
  };
  State state() const { return {seconds(), shown_samples_, shown_iteration_, tables_}; }
  void go_on(const State&);
  /// Stops and starts the clock of the training speed. The clock is stopped at first. Repeated calls have no effect.
  void pause();
  void go_on();
  /// Samples per second between the last two displays; 0 before the second display.
  double rate() const { return rate_; }

  /// Call after each queued step. `samples`: samples so far. Updates the progress bar.
  void queued(int64_t samples);
  /// Call when no batch is available. `remark`: the reason.
  void waiting(int64_t samples, const std::string& remark);
  /// Appends a line to metrics.jsonl with the time of day as "time". Passes the line to the other consumers of
  /// ReporterOptions.
  void add_line(Json line);
  /// Reports a display.
  void trained(const TrainedFigures&);
  void evaluated(int64_t iteration, const Evaluator::Result&, double seconds);
  /// Reports the table counts that have changed since the last call. `shown`: whether to log them as well.
  void tables(int64_t iteration, const TableCounts& counts, bool shown = true);
  void event(const std::string& line);
  void warning(const std::string& line);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// Logs a line. Does nothing if a callback receives the metrics.
  void display(const std::string& line) {
    if (!options_.lines) event(line);
  }
  const Log& log_;
  RunFolder& folder_;
  ReporterOptions options_;
  std::optional<EventFile> events_;
  std::optional<PrometheusFile> prometheus_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
  std::optional<Clock::time_point> paused_ = start_;
  double rate_ = 0;
  int64_t total_samples_, shown_samples_ = 0, shown_iteration_ = 0;
  double shown_reader_seconds_ = 0;
  double shown_disk_seconds_ = 0;
  TableCounts tables_;  // counts as last reported
  Progress progress_;
};

}  // namespace hctr
