// huge_ctr --report RUN [RUN...] --out FILE.html
#pragma once

#include <string>
#include <vector>

#include "hctr/report.h"
#include "program/command_line.h"

namespace hctr {

/// The options of the command, and the command itself.
class ReportCommand {
 public:
  /// Adds --report and its own options. Must outlive parse().
  explicit ReportCommand(CommandLine&);
  bool given() const { return !runs_.empty(); }
  std::vector<std::string>& runs() { return runs_; }
  /// Writes the report. `out`: the value of --out. Returns the exit code. Errors: those of report_runs(); Error(usage).
  int run(const JobOptions&, const std::string& out);

 private:
  std::vector<std::string> runs_;
  RunReportOptions options_;
  bool no_scores_ = false;
};

}  // namespace hctr
