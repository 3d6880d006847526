#include "embedding/plan.h"

#include <algorithm>

#include "base/error.h"

namespace hctr {
namespace {

constexpr double kGain = 0.9;         // being spread must save a tenth, since it also makes sums of parts
constexpr double kKeptMemory = 0.85;  // activations and batches need some too

/// What a rank has to do, or has.
struct Load {
  double seconds = 0, bytes = 0;
};

/// Slots that are placed together.
struct Unit {
  size_t table = 0, first = 0, count = 1;
  Load whole, spread;  // on the owner; on every rank
};

class Planner {
 public:
  explicit Planner(const PlanProblem& problem) : problem_(problem), loads_(static_cast<size_t>(problem.ranks)) {
    for (const PlanTable& table : problem.tables)
      placements_.push_back(Placement::without_plan(table.rule, true, static_cast<int64_t>(table.slots.size()), problem.ranks));
  }

  std::vector<Placement> run() {
    collect();
    spread_the_heaviest();
    for (const Unit& unit : units_) place(unit);
    return std::move(placements_);
  }

 private:
  /// The units that are free to move; the others' loads are known.
  void collect() {
    for (size_t t = 0; t < problem_.tables.size(); ++t) {
      const PlanTable& table = problem_.tables[t];
      const size_t together = table.identity_by_slot ? 1 : table.slots.size();
      for (size_t first = 0; first < table.slots.size(); first += together) {
        Unit unit{t, first, together, {}, {}};
        for (size_t s = first; s < first + together; ++s) {
          add(unit.whole, cost(table, table.slots[s], false));
          add(unit.spread, cost(table, table.slots[s], true));
        }
        if (table.rule == PlacementRule::by_key) spread(unit);
        else if (table.as_without_plan) add(loads_[first % loads_.size()], unit.whole);
        else units_.push_back(unit);
      }
    }
    std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.whole.seconds > b.whole.seconds; });
  }

  void spread_the_heaviest() {
    for (auto unit = units_.begin(); unit != units_.end();) {
      double all = 0;
      for (const Load& load : loads_) all += load.seconds;
      for (const Unit& other : units_) all += other.whole.seconds;
      const bool exceeds = unit->whole.seconds * kGain > all / static_cast<double>(loads_.size());
      if (exceeds && unit->spread.seconds < kGain * unit->whole.seconds && may_spread(*unit)) {
        spread(*unit);
        unit = units_.erase(unit);
      } else {
        ++unit;
      }
    }
  }

  void place(const Unit& unit) {
    const double room = problem_.speeds.memory > 0 ? kKeptMemory * static_cast<double>(problem_.speeds.memory) : 1e300;
    std::vector<size_t> ranks;
    for (size_t r = 0; r < loads_.size(); ++r)
      if (loads_[r].bytes + unit.whole.bytes <= room) ranks.push_back(r);
    if (ranks.empty() && may_spread(unit)) return spread(unit);
    const auto less_time = [&](size_t a, size_t b) { return loads_[a].seconds < loads_[b].seconds; };
    const auto fewer_bytes = [&](size_t a, size_t b) { return loads_[a].bytes < loads_[b].bytes; };
    size_t rank = 0;
    if (!ranks.empty()) {
      rank = *std::min_element(ranks.begin(), ranks.end(), less_time);
    } else {  // nowhere is room: memory matters more than time
      for (size_t r = 1; r < loads_.size(); ++r)
        if (fewer_bytes(r, rank)) rank = r;
    }
    add(loads_[rank], unit.whole);
    set_owner(unit, static_cast<int32_t>(rank));
  }

  bool may_spread(const Unit& unit) const { return problem_.tables[unit.table].rule == PlacementRule::automatic; }
  void spread(const Unit& unit) {
    for (Load& load : loads_) add(load, unit.spread);
    if (!placements_[unit.table].owners.empty()) set_owner(unit, Placement::kSpread);
  }
  void set_owner(const Unit& unit, int32_t owner) {
    for (size_t s = unit.first; s < unit.first + unit.count; ++s) placements_[unit.table].owners[s] = owner;
  }
  static void add(Load& to, const Load& more) {
    to.seconds += more.seconds;
    to.bytes += more.bytes;
  }

 public:
  /// What a slot costs its owner; or each rank, when it is spread.
  Load cost(const PlanTable& table, const PlanSlot& slot, bool spread) const {
    const MachineSpeeds& speeds = problem_.speeds;
    const auto ranks = static_cast<double>(problem_.ranks), batch = static_cast<double>(problem_.batch);
    const double vector = static_cast<double>(table.dim) * sizeof(float), share = spread ? 1 / ranks : 1, elsewhere = (ranks - 1) / ranks;
    const double keys = batch * slot.keys, vectors = batch * static_cast<double>(slot.vectors);
    double distinct = slot.distinct > 0 ? slot.distinct : keys;
    if (slot.rows > 0) distinct = std::min(distinct, static_cast<double>(slot.rows));
    const double sent = (2 * vectors * vector + keys * sizeof(int64_t)) * elsewhere;  // by every owner for all samples
    const double touched = (keys * 2 * vector + distinct * 2 * static_cast<double>(table.row_bytes)) * share;
    const double parts = spread ? vectors * vector * elsewhere : 0;  // of other owners, to be added up
    return {sent / speeds.link + (touched + parts) / speeds.rows, static_cast<double>(slot.rows * table.row_bytes) * share};
  }

 private:
  const PlanProblem& problem_;
  std::vector<Placement> placements_;
  std::vector<Load> loads_;
  std::vector<Unit> units_;
};

}  // namespace

std::vector<Placement> make_plan(const PlanProblem& problem) {
  HCTR_EXPECT(problem.ranks > 0, "a plan for ", problem.ranks, " ranks");
  return Planner(problem).run();
}

std::vector<PlanShare> plan_shares(const PlanProblem& problem, const std::vector<Placement>& placements) {
  const Planner planner(problem);
  std::vector<PlanShare> shares;
  for (int32_t rank = 0; rank < problem.ranks; ++rank)
    for (size_t t = 0; t < problem.tables.size(); ++t) {
      const PlanTable& table = problem.tables[t];
      PlanShare share{.rank = rank, .table = table.name};
      for (size_t s = 0; s < table.slots.size(); ++s) {
        const auto slot = static_cast<int64_t>(s);
        if (!placements.at(t).holds(rank, slot)) continue;
        const bool spread = placements[t].spread(slot);
        const Load load = planner.cost(table, table.slots[s], spread);
        share.seconds += load.seconds;
        share.bytes += static_cast<int64_t>(load.bytes);
        share.rows += spread ? (table.slots[s].rows + problem.ranks - 1) / problem.ranks : table.slots[s].rows;
        if (spread) ++share.spread_slots;
        else share.slots.push_back(static_cast<int32_t>(s));
      }
      if (!share.slots.empty() || share.spread_slots > 0) shares.push_back(std::move(share));
    }
  return shares;
}

}  // namespace hctr
