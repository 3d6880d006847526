// Which run a run folder belongs to.
#pragma once

#include <string>

#include "core/base/files.h"

namespace hctr {

inline constexpr const char *kMetrics = "metrics.jsonl", *kAbout = "run.json";

/// The id of the run that a run.json, or the first line of a metrics.jsonl, says; empty where it says none, or is none.
std::string run_in_about(const fs::path& run_json);
std::string run_in_metrics(const fs::path& metrics);

}  // namespace hctr
