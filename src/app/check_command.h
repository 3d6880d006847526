// huge_ctr --check: a config, what it will cost, and with --check-data its data.
#pragma once

#include <string>

#include "hctr/solver.h"
#include "program/command_line.h"

namespace hctr {

class CheckCommand {
 public:
  /// Adds --check and the options that belong to it alone. Outlives parse().
  explicit CheckCommand(CommandLine&);

  bool given() const { return !config_.empty(); }
  std::string& config() { return config_; }
  /// Prints what was found on the standard output, and notes on the standard error stream. Returns the exit code.
  /// Errors: those of check(); with --check-data Error(data) after printing, if the data do not fit the config, and
  /// those of inspect().
  int run(const JobOptions&);

 private:
  std::string config_;
  CheckOptions options_;
  std::string format_ = "text";
  double gpu_memory_ = 0;
  bool data_ = false;
};

}  // namespace hctr
