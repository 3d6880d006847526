// Finds the run to which a run folder belongs.
#pragma once

#include <string>

#include "core/base/files.h"

namespace hctr {

inline constexpr const char *kMetrics = "metrics.jsonl", *kAbout = "run.json", *kSummary = "summary.json";

/// The run's id in a run.json, or in the first line of a metrics.jsonl; empty if the file has none.
std::string run_in_about(const fs::path& run_json);
std::string run_in_metrics(const fs::path& metrics);

}  // namespace hctr
