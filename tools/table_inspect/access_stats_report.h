// Reports the access statistics of a model file (how often and when each key occurred), as text and as JSON.
#pragma once

#include "config/json.h"
#include "formats/model/access_stats_summary.h"

namespace hctr {

/// Prints counts and histograms. Returns {"steps", "rows", "occurrences", "most_occurrences", "by_occurrences",
/// "by_steps_unseen"}, without the members that the file lacks.
Json show_access_stats(const AccessStatsHead&, const AccessStatsSummary&);

}  // namespace hctr
