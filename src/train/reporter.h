// The output of a run: the progress bar and log lines for people, metrics.jsonl for programs.
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
  using TableCounts = std::map<std::string, std::map<std::string, int64_t>>;  // counts of each table, by name
  /// `total_samples`: samples that the run will train on, for the time left.
  Reporter(const Log&, RunFolder&, int64_t total_samples);
  /// What has been reported so far, for a run that goes on.
  struct State {
    double seconds = 0;
    int64_t samples = 0, iteration = 0;  // of the last display
    TableCounts tables;
  };
  State state() const { return {seconds(), shown_samples_, shown_iteration_, tables_}; }
  void go_on(const State&);

  /// Call after each queued step with the samples so far; updates the progress bar.
  void queued(int64_t samples);
  /// Reports a display iteration and the loss of its step.
  void trained(int64_t iteration, int64_t samples, double loss, double learning_rate);
  void evaluated(int64_t iteration, int64_t eval_samples, const std::map<std::string, double>& metrics, double seconds);
  /// Reports the counts of tables that have changed since the last call.
  void tables(int64_t iteration, const TableCounts& counts);
  void event(const std::string& line);
  void warning(const std::string& line);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  const Log& log_;
  RunFolder& folder_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
  int64_t total_samples_, shown_samples_ = 0, shown_iteration_ = 0;
  TableCounts tables_;  // as last reported
  Progress progress_;
};

}  // namespace hctr
