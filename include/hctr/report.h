// Writes an HTML report of training runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/solver.h"

namespace hctr {

/// JobOptions::config is ignored, because each run folder has its own config.
struct RunReportOptions : JobOptions {
  std::vector<std::filesystem::path> runs;  ///< run folders, in the order of the report
  std::filesystem::path out;                ///< an HTML file
  /// scores evaluation samples with each final model, if model and samples exist
  bool scores = true;
  bool importance = false;  ///< measures feature importance by permutation
  int64_t rows = 100000;    ///< maximum number of evaluation samples to score
};

struct RunReportSummary {
  std::vector<std::string> notes;  ///< missing parts of the report, with the reasons
  bool interrupted = false;        ///< stopped by JobOptions::stop; no report was written
};

/// Writes one HTML file that contains all its numbers, drawings and styles. Missing data of a run cause notes in the
/// report. Errors: Error(usage) if a folder is not a run folder; Error(io).
HCTR_API RunReportSummary report_runs(const RunReportOptions&);

}  // namespace hctr
