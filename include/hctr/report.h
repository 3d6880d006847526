// A page that shows what happened in training runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hctr/export.h"
#include "hctr/solver.h"

namespace hctr {

/// JobOptions::config is not used: each run folder has its own.
struct RunReportOptions : JobOptions {
  std::vector<std::filesystem::path> runs;  ///< run folders, in the order of the page
  std::filesystem::path out;                ///< an HTML file
  bool scores = true;                       ///< score evaluation samples with each final model, where both are there
  bool importance = false;                  ///< measure features by permuting them
  int64_t rows = 100000;                    ///< the most evaluation samples to score
};

struct RunReportSummary {
  std::vector<std::string> notes;  ///< what could not be shown, and why
  bool interrupted = false;        ///< ended by JobOptions::stop; there is no page then
};

/// Writes one HTML file that needs nothing else: numbers, drawings and style are in it. What a run lacks is a note on
/// the page. Errors: Error(usage) when a folder is no run folder; Error(io).
HCTR_API RunReportSummary report_runs(const RunReportOptions&);

}  // namespace hctr
