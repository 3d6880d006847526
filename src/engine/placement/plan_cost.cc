#include "engine/placement/plan_cost.h"

#include <algorithm>

namespace hctr::plan {
namespace {

constexpr double kLookup = 64;  // bytes accessed to look up a key

}  // namespace

Load cost(const PlanProblem& problem, const PlanTable& table, size_t slot_number, bool spread, int64_t pieces) {
  const PlanSlot& slot = table.slots[slot_number / static_cast<size_t>(pieces)];
  const MachineSpeeds& speeds = problem.speeds;
  const auto ranks = static_cast<double>(problem.ranks), batch = static_cast<double>(problem.batch),
             part = 1 / static_cast<double>(pieces);
  const double vector = static_cast<double>(table.dim) * sizeof(float) * part,
               row = static_cast<double>(table.row_bytes) * part;
  const double share = spread ? 1 / ranks : 1, elsewhere = (ranks - 1) / ranks;
  const double keys = batch * slot.keys, vectors = batch * static_cast<double>(slot.vectors),
               rows = static_cast<double>(slot.rows);
  double distinct = slot.distinct > 0 ? slot.distinct : keys;
  if (slot.rows > 0) distinct = std::min(distinct, rows);
  const double travelling = static_cast<double>(table.dim * table.number_bytes) * part;
  const double sent =
      // not multiplied by `share`, because in a sharded slot every owner sends vectors for all samples
      (2 * vectors * travelling + keys * sizeof(int64_t)) * elsewhere;
  const double touched = (keys * (kLookup + 2 * vector) + distinct * 2 * row) * share;
  // bytes of partial sums from other owners, which must be added
  const double added = spread ? vectors * vector * elsewhere : 0;
  return {sent / speeds.link + (touched + added) / speeds.rows, rows * row * share};
}

Load cost_replicated(const PlanProblem& problem, const PlanTable& table, size_t slot_number) {
  const PlanSlot& slot = table.slots[slot_number];
  const double vector = static_cast<double>(table.dim) * sizeof(float), row = static_cast<double>(table.row_bytes),
               rows = static_cast<double>(slot.rows);
  const double keys = static_cast<double>(problem.batch) * slot.keys, mine = keys / static_cast<double>(problem.ranks);
  const double distinct = std::min(rows, slot.distinct > 0 ? slot.distinct : keys);
  return {
      rows * vector / problem.speeds.sums + (mine * (kLookup + 2 * vector) + distinct * 2 * row) / problem.speeds.rows,
      rows * (row + vector)};  // the second value includes the buffer of summed gradients
}

double waiting(const MachineSpeeds& speeds, bool exchanges, bool sums) {
  return (exchanges ? 3 * speeds.link_seconds : 0) + (sums ? 2 * speeds.sums_seconds : 0);
}

}  // namespace hctr::plan
