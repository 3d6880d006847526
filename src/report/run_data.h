// One run of a report: the contents of its folder, and its model's scores of the evaluation set.
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
  Json summary, config, about, profile;  ///< null where the file is missing or broken
  std::optional<ScoredSample> scored;
  std::vector<std::string> notes;
};

/// Errors: Error(usage) when the folder holds no metrics.jsonl.
RunData read_run(const std::filesystem::path&, const Environment&);
/// Scores evaluation samples with the final model. On failure the notes state why. Returns false when a stop was
/// requested.
bool score_run(RunData&, const RunReportOptions&);

/// "finished", "stopped early", "stopped on request", or what else is known of the end.
std::string end_of(const RunData&);

/// The data of the page.
Json page_json(const RunData&);

}  // namespace hctr
