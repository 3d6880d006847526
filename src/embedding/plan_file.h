// A plan as a file, and as a table for people.
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "embedding/plan.h"

namespace hctr {

/// {"schema": 1, "ranks", "speeds": {...}, "tables": [{"name", "pieces", "owners": [0, 2, "all", ...]}], "shares":
/// [{"rank", "table", "slots", ...}]}. The owner of a slot is a rank, or "all" where every rank has the rows of its
/// keys, or "every rank" where each has all rows. With several pieces those of a slot stand side by side among the
/// owners; of a table that every rank has, "owners" is "every rank". "speeds" and "shares" are for readers.
Json plan_to_json(const PlanProblem&, const std::vector<Placement>&);

/// The owners from such a file, for these ranks and tables. Errors: Error(config), naming the file and what does not
/// fit: another number of ranks, a table that is missing or has other slots, an owner that does not exist, slots that
/// share rows and not their owner, pieces that cannot be.
std::vector<Placement> plan_from_json(const Json&, const std::string& file, const PlanProblem&);

/// A line for each rank and table: slots, rows, bytes, expected time.
std::string plan_text(const PlanProblem&, const std::vector<Placement>&);

}  // namespace hctr
