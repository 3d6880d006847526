// Summarizes a plan by rank and table.
#include <algorithm>
#include <cmath>

#include "engine/placement/plan_cost.h"

namespace hctr {
namespace {

constexpr double kMost = 9e18;  // larger numbers of rows or bytes are reported as this number

}  // namespace

using namespace plan;

std::vector<RankPlan> rank_plans(const PlanProblem& problem, const std::vector<Placement>& placements) {
  std::vector<RankPlan> shares;
  for (int32_t rank = 0; rank < problem.ranks; ++rank)
    for (size_t t = 0; t < problem.tables.size(); ++t) {
      const PlanTable& table = problem.tables[t];
      const Placement& placement = placements.at(t);
      RankPlan share{.rank = rank, .table = table.name, .slots = {}};
      double rows = 0, bytes = 0;  // double, because users may state sizes of any magnitude
      bool exchanges = false, sums = false;
      const auto add = [&](const Load& load) {
        share.seconds += load.seconds;
        bytes += load.bytes;
      };
      for (size_t s = 0; s < table.slots.size(); ++s) {
        if (placement.replicated_on(problem.ranks) ||
            placement.replicated(static_cast<int64_t>(s) * placement.pieces)) {
          sums = true;
          add(cost_replicated(problem, table, s));
          rows += static_cast<double>(table.slots[s].rows);
          share.slots.push_back(static_cast<int32_t>(s));
          continue;
        }
        exchanges = true;
        int64_t whole = 0, spread = 0;  // number of pieces
        for (int64_t p = 0; p < placement.pieces; ++p) {
          const int64_t number = static_cast<int64_t>(s) * placement.pieces + p;
          if (!placement.holds(rank, number)) continue;
          ++(placement.spread(number) ? spread : whole);
          add(cost(problem, table, static_cast<size_t>(number), placement.spread(number), placement.pieces));
        }
        if (whole > 0)
          rows += static_cast<double>(table.slots[s].rows);
        else if (spread > 0)
          rows += std::ceil(static_cast<double>(table.slots[s].rows) / static_cast<double>(problem.ranks));
        if (whole == placement.pieces)
          share.slots.push_back(static_cast<int32_t>(s));
        else if (whole > 0)
          ++share.cut_slots;
        else if (spread > 0)
          ++share.spread_slots;
      }
      share.seconds += waiting(problem.speeds, exchanges, sums);
      share.rows = static_cast<int64_t>(std::min(rows, kMost));
      share.bytes = static_cast<int64_t>(std::min(bytes, kMost));
      if (!share.slots.empty() || share.cut_slots > 0 || share.spread_slots > 0) shares.push_back(std::move(share));
    }
  return shares;
}

}  // namespace hctr
