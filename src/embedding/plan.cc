#include "embedding/plan.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hctr {
namespace {

constexpr double kGain = 0.9;         // to be spread or cut must save a tenth
constexpr double kKeptMemory = 0.85;  // activations and batches need some too
constexpr double kMost = 9e18;        // that is told of
constexpr double kLookup = 64;        // bytes that finding a key's row touches

/// What a rank has to do, or has.
struct Load {
  double seconds = 0, bytes = 0;
  Load& operator+=(const Load& more) {
    seconds += more.seconds;
    bytes += more.bytes;
    return *this;
  }
};

/// What a slot, or a piece of one, costs its owner; or each rank, when it is spread.
Load cost(const PlanProblem& problem, const PlanTable& table, size_t slot_number, bool spread, int64_t pieces) {
  const PlanSlot& slot = table.slots[slot_number / static_cast<size_t>(pieces)];
  const MachineSpeeds& speeds = problem.speeds;
  const auto ranks = static_cast<double>(problem.ranks), batch = static_cast<double>(problem.batch), part = 1 / static_cast<double>(pieces);
  const double vector = static_cast<double>(table.dim) * sizeof(float) * part, row = static_cast<double>(table.row_bytes) * part;
  const double share = spread ? 1 / ranks : 1, elsewhere = (ranks - 1) / ranks;
  const double keys = batch * slot.keys, vectors = batch * static_cast<double>(slot.vectors), rows = static_cast<double>(slot.rows);
  double distinct = slot.distinct > 0 ? slot.distinct : keys;
  if (slot.rows > 0) distinct = std::min(distinct, rows);
  const double travelling = static_cast<double>(table.dim * table.number_bytes) * part;
  const double sent = (2 * vectors * travelling + keys * sizeof(int64_t)) * elsewhere;  // by every owner for all samples
  const double touched = (keys * (kLookup + 2 * vector) + distinct * 2 * row) * share;
  const double added = spread ? vectors * vector * elsewhere : 0;  // what other owners have of the vectors
  return {sent / speeds.link + (touched + added) / speeds.rows, rows * row * share};
}

/// What a slot costs each rank when all have its rows: a sum of all its gradients instead of vectors.
Load cost_everywhere(const PlanProblem& problem, const PlanTable& table, size_t slot_number) {
  const PlanSlot& slot = table.slots[slot_number];
  const double vector = static_cast<double>(table.dim) * sizeof(float), row = static_cast<double>(table.row_bytes), rows = static_cast<double>(slot.rows);
  const double keys = static_cast<double>(problem.batch) * slot.keys, mine = keys / static_cast<double>(problem.ranks);
  const double distinct = std::min(rows, slot.distinct > 0 ? slot.distinct : keys);
  return {rows * vector / problem.speeds.sums + (mine * (kLookup + 2 * vector) + distinct * 2 * row) / problem.speeds.rows, rows * row};
}

/// Slots, or pieces of them, that are placed together.
struct Unit {
  size_t table = 0, first = 0, count = 1;
  Load whole, spread;  // of the owner; of every rank
};

class Planner {
 public:
  /// `pieces` of each table.
  Planner(const PlanProblem& problem, const std::vector<int64_t>& pieces) : problem_(problem), loads_(static_cast<size_t>(problem.ranks)) {
    for (size_t t = 0; t < problem.tables.size(); ++t) {
      const PlanTable& table = problem.tables[t];
      placements_.push_back(Placement::without_plan(table.rule, true, static_cast<int64_t>(table.slots.size()) * pieces[t], problem.ranks));
      placements_.back().pieces = pieces[t];
    }
    collect();
    spread_the_heaviest();
    for (const Unit& unit : units_) place(unit);
  }

  const std::vector<Placement>& placements() const { return placements_; }
  /// Bytes for which there was no room, then seconds of the busiest rank.
  std::pair<double, double> badness() const {
    double seconds = 0, beyond = 0;
    for (const Load& load : loads_) {
      seconds = std::max(seconds, load.seconds);
      beyond = std::max(beyond, load.bytes - room());
    }
    return {std::max(beyond, 0.0), seconds};
  }

 private:
  double room() const { return problem_.speeds.memory > 0 ? kKeptMemory * static_cast<double>(problem_.speeds.memory) : 1e300; }

  /// The units that are free to move; the others' loads are known.
  void collect() {
    for (size_t t = 0; t < problem_.tables.size(); ++t) {
      const PlanTable& table = problem_.tables[t];
      if (table.rule == PlacementRule::data_parallel) {
        for (size_t s = 0; s < table.slots.size(); ++s)
          for (Load& load : loads_) load += cost_everywhere(problem_, table, s);
        continue;
      }
      const int64_t pieces = placements_[t].pieces;
      const size_t slots = table.slots.size() * static_cast<size_t>(pieces), together = table.identity_by_slot ? 1 : slots;
      for (size_t first = 0; first < slots; first += together) {
        Unit unit{t, first, together, {}, {}};
        for (size_t s = first; s < first + together; ++s) {
          unit.whole += cost(problem_, table, s, false, pieces);
          unit.spread += cost(problem_, table, s, true, pieces);
        }
        if (table.rule == PlacementRule::distributed) spread(unit);
        else if (table.as_without_plan) loads_[first % loads_.size()] += unit.whole;
        else units_.push_back(unit);
      }
    }
    std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.whole.seconds > b.whole.seconds; });
  }

  void spread_the_heaviest() {
    double all = 0;
    for (const Load& load : loads_) all += load.seconds;
    for (const Unit& unit : units_) all += unit.whole.seconds;
    const auto ranks = static_cast<double>(loads_.size());
    std::vector<Unit> left;
    for (const Unit& unit : units_) {
      const bool exceeds = unit.whole.seconds * kGain > all / ranks;
      if (exceeds && unit.spread.seconds < kGain * unit.whole.seconds && may_spread(unit)) {
        spread(unit);
        all += ranks * unit.spread.seconds - unit.whole.seconds;
      } else {
        left.push_back(unit);
      }
    }
    units_ = std::move(left);
  }

  void place(const Unit& unit) {
    const auto less_time = [](const Load& a, const Load& b) { return a.seconds < b.seconds; };
    const auto fewer_bytes = [](const Load& a, const Load& b) { return a.bytes < b.bytes; };
    auto rank = loads_.end();
    for (auto each = loads_.begin(); each != loads_.end(); ++each)
      if (each->bytes + unit.whole.bytes <= room() && (rank == loads_.end() || less_time(*each, *rank))) rank = each;
    if (rank == loads_.end() && may_spread(unit)) return spread(unit);
    if (rank == loads_.end()) rank = std::min_element(loads_.begin(), loads_.end(), fewer_bytes);
    *rank += unit.whole;
    set_owner(unit, static_cast<int32_t>(rank - loads_.begin()));
  }

  bool may_spread(const Unit& unit) const { return problem_.tables[unit.table].rule == PlacementRule::automatic; }
  void spread(const Unit& unit) {
    for (Load& load : loads_) load += unit.spread;
    if (!placements_[unit.table].owners.empty()) set_owner(unit, Placement::kSpread);
  }
  void set_owner(const Unit& unit, int32_t owner) {
    for (size_t s = unit.first; s < unit.first + unit.count; ++s) placements_[unit.table].owners[s] = owner;
  }

  const PlanProblem& problem_;
  std::vector<Placement> placements_;
  std::vector<Load> loads_;
  std::vector<Unit> units_;
};

}  // namespace

std::vector<Placement> make_plan(const PlanProblem& given) {
  HCTR_EXPECT(given.ranks > 0, "a plan for ", given.ranks, " ranks");
  PlanProblem problem = given;
  std::vector<int64_t> pieces(problem.tables.size(), 1);
  Planner best(problem, pieces);
  std::vector<Placement> placements = best.placements();
  auto least = best.badness();
  const auto improves = [&] {
    const Planner other(problem, pieces);
    const auto badness = other.badness();
    if (badness.first > least.first || (badness.first == least.first && badness.second >= kGain * least.second)) return false;
    least = badness;
    placements = other.placements();
    return true;
  };
  for (size_t t = 0; t < problem.tables.size(); ++t) {
    PlanTable& table = problem.tables[t];
    if (table.rule != PlacementRule::automatic || table.as_without_plan || problem.ranks == 1) continue;
    if (table.may_be_everywhere) {
      table.rule = PlacementRule::data_parallel;
      if (improves()) continue;
      table.rule = PlacementRule::automatic;
    }
    int64_t most = table.may_be_cut ? problem.ranks : 1;
    while (most > 1 && table.dim % (4 * most) != 0) --most;
    pieces[t] = most;
    if (most > 1 && !improves()) pieces[t] = 1;
  }
  return placements;
}

std::vector<PlanShare> plan_shares(const PlanProblem& problem, const std::vector<Placement>& placements) {
  std::vector<PlanShare> shares;
  for (int32_t rank = 0; rank < problem.ranks; ++rank)
    for (size_t t = 0; t < problem.tables.size(); ++t) {
      const PlanTable& table = problem.tables[t];
      const Placement& placement = placements.at(t);
      PlanShare share{.rank = rank, .table = table.name, .slots = {}};
      double rows = 0, bytes = 0;  // of sizes that users state and that may be anything
      const auto add = [&](const Load& load) {
        share.seconds += load.seconds;
        bytes += load.bytes;
      };
      for (size_t s = 0; s < table.slots.size(); ++s) {
        if (placement.everywhere(problem.ranks)) {
          add(cost_everywhere(problem, table, s));
          rows += static_cast<double>(table.slots[s].rows);
          share.slots.push_back(static_cast<int32_t>(s));
          continue;
        }
        int64_t whole = 0, spread = 0;  // pieces
        for (int64_t p = 0; p < placement.pieces; ++p) {
          const int64_t number = static_cast<int64_t>(s) * placement.pieces + p;
          if (!placement.holds(rank, number)) continue;
          ++(placement.spread(number) ? spread : whole);
          add(cost(problem, table, static_cast<size_t>(number), placement.spread(number), placement.pieces));
        }
        if (whole > 0) rows += static_cast<double>(table.slots[s].rows);
        else if (spread > 0) rows += std::ceil(static_cast<double>(table.slots[s].rows) / static_cast<double>(problem.ranks));
        if (whole == placement.pieces) share.slots.push_back(static_cast<int32_t>(s));
        else if (whole > 0) ++share.cut_slots;
        else if (spread > 0) ++share.spread_slots;
      }
      share.rows = static_cast<int64_t>(std::min(rows, kMost));
      share.bytes = static_cast<int64_t>(std::min(bytes, kMost));
      if (!share.slots.empty() || share.cut_slots > 0 || share.spread_slots > 0) shares.push_back(std::move(share));
    }
  return shares;
}

}  // namespace hctr
