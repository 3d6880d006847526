// What stands beside a model file of how often and when its keys came, for people and as JSON.
#pragma once

#include "config/json.h"
#include "embedding/access_stats_summary.h"

namespace hctr {

/// Prints counts and histograms; the same as {"steps", "rows", "occurrences", "most_occurrences", "by_occurrences",
/// "by_steps_unseen"}, those that there are.
Json show_access_stats(const AccessStatsHead&, const AccessStatsSummary&);

}  // namespace hctr
