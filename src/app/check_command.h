// huge_ctr --check: checks a config and estimates its costs. With --check-data, also compares the data with the config.
#pragma once

#include <string>

#include "hctr/solver.h"
#include "program/command_line.h"

namespace hctr {

class CheckCommand {
 public:
  /// Adds --check and its own options. Must outlive parse().
  explicit CheckCommand(CommandLine&);

  bool given() const { return !config_.empty(); }
  std::string& config() { return config_; }
  /// Prints the results on the standard output, and notes on the standard error stream. Returns the exit code. Errors:
  /// those of check(). With --check-data: Error(data), after printing, if the data do not match the config, and the
  /// errors of inspect().
  int run(const JobOptions&);

 private:
  std::string config_;
  CheckOptions options_;
  std::string format_ = "text";
  double gpu_memory_ = 0;
  bool data_ = false;
};

}  // namespace hctr
