// One run of a report: the contents of its folder, and the scores of its model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hctr/report.h"
#include "report/metrics_log.h"
#include "use/scored_sample.h"

namespace hctr {

struct RunData {
  std::filesystem::path folder;
  std::string name;  ///< unique on the page
  MetricsLog log;
  Json summary, config, about, profile;  ///< null if the file is missing or invalid
  std::optional<ScoredSample> scored;
  std::vector<std::string> notes;
};

/// Reads a run folder. Errors: Error(usage) if the folder has no metrics.jsonl.
RunData read_run(const std::filesystem::path&, const Environment&);
/// Scores evaluation samples with the final model. A failure is described in the notes. Returns false if a stop was
/// requested.
bool score_run(RunData&, const RunReportOptions&);

/// How the run ended: "finished", "stopped early", "stopped on request", or another description.
std::string end_of(const RunData&);

/// The run's data for the page.
Json page_json(const RunData&);

}  // namespace hctr
