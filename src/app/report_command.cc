#include "app/report_command.h"

#include "app/stop_signals.h"
#include "core/base/expect.h"
#include "program/terminal.h"

namespace hctr {

ReportCommand::ReportCommand(CommandLine& app) {
  app.add_option("--report", runs_, "Write a page (--out FILE.html) about the runs in these run folders")
      .type_name("RUN");
  app.add_flag("--no-scores", no_scores_, "Do not score the evaluation set with the final models");
  app.add_flag("--importance", options_.importance,
               "Show for each feature how much AUC drops when its values are shuffled between samples");
  app.add_option("--score-rows", options_.rows, "Maximum number of evaluation samples to score")
      .positive()
      .show_default();
}

int ReportCommand::run(const JobOptions& job, const std::string& out) {
  if (out.empty() || !(out.ends_with(".html") || out.ends_with(".htm")))
    throw Error(Kind::usage, cat("--report needs --out with a file that ends in .html",
                                 out.empty() ? "" : cat("; it is '", out, "'")));
  if (no_scores_ && options_.importance)
    throw Error(Kind::usage, "--importance needs scores, which --no-scores disables; keep one");
  static_cast<JobOptions&>(options_) = job;
  options_.runs.assign(runs_.begin(), runs_.end());
  options_.out = out;
  options_.scores = !no_scores_;
  const RunReportSummary summary = report_runs(options_);
  if (summary.interrupted) {
    print_note("Stopped on request: no report was written.\n");
    return exit_code_of_stop(*job.stop);
  }
  for (const std::string& note : summary.notes) print_note(cat("note: ", note, "\n"));
  print_note(cat("Wrote ", out, ": ", runs_.size(), runs_.size() == 1 ? " run" : " runs", ".\n"));
  return 0;
}

}  // namespace hctr
