// What a person sees of a run: a progress line, lines for display, evaluation and snapshots, and the same for programs
// in metrics.jsonl.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/progress.h"
#include "train/run_folder.h"

namespace hctr {

class Reporter {
 public:
  using TableCounts = std::map<std::string, std::map<std::string, int64_t>>;  // of each table, by name
  /// `samples_in_all`: to train on, for the time left. With a folder that is nowhere, all goes to the log alone.
  Reporter(const Log&, RunFolder&, int64_t samples_in_all);

  /// A step has been queued; redraws the progress line now and then.
  void queued(int64_t samples);
  /// A display iteration: the loss of the step just finished.
  void trained(int64_t iteration, int64_t samples, double loss, double learning_rate);
  void evaluated(int64_t iteration, int64_t eval_samples, const std::map<std::string, double>& metrics, double seconds);
  /// What became of rows and keys of the tables, where that is not as it was last time.
  void tables(int64_t iteration, const TableCounts& counts);
  void event(const std::string& line);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  const Log& log_;
  RunFolder& folder_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
  int64_t samples_in_all_, shown_samples_ = 0, shown_iteration_ = 0;
  TableCounts tables_;  // as last shown
  Progress progress_;
};

}  // namespace hctr
