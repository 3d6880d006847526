// Writes a page that shows what happened in training runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/solver.h"

namespace hctr {

/// JobOptions::config is ignored: each run folder has its own.
struct RunReportOptions : JobOptions {
  std::vector<std::filesystem::path> runs;  ///< run folders, in the order of the page
  std::filesystem::path out;                ///< an HTML file
  bool scores = true;                       ///< scores evaluation samples with each final model, if both exist
  bool importance = false;                  ///< measures feature importance by permutation
  int64_t rows = 100000;                    ///< maximum number of evaluation samples to score
};

struct RunReportSummary {
  std::vector<std::string> notes;  ///< missing parts of the page, with the reasons
  bool interrupted = false;        ///< ended by JobOptions::stop; then there is no page
};

/// Writes a self-contained HTML file with numbers, drawings and style. Data that a run lacks become notes on the page.
/// Errors: Error(usage) when a folder is not a run folder; Error(io).
HCTR_API RunReportSummary report_runs(const RunReportOptions&);

}  // namespace hctr
