// Plans as JSON files and as text tables.
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "engine/placement/plan.h"

namespace hctr {

/// Returns {"schema": 1, "ranks", "speeds": {...}, "tables": [{"name", "pieces", "owners": [0, 2, "all", ...]}],
/// "shares": [{"rank", "table", "slots", ...}]}. The owner of a slot is a rank, "all" if its rows are sharded over all
/// ranks by key, or "every rank" if its rows are replicated. With several pieces, the owners of the pieces of a slot
/// are consecutive. For a replicated table "owners" is "every rank". "speeds" and "shares" are informative.
Json plan_to_json(const PlanProblem&, const std::vector<Placement>&);

/// Reads the owners from the JSON of plan_to_json(). Errors: Error(config) naming the file and the mismatch: another
/// number of ranks, a table that is missing or has other slots, an owner that does not exist, slots that share rows but
/// have different owners, or impossible pieces.
std::vector<Placement> plan_from_json(const Json&, const std::string& file, const PlanProblem&);

/// Formats one line per rank and table: slots, rows, bytes, expected time.
std::string plan_text(const PlanProblem&, const std::vector<Placement>&);

}  // namespace hctr
