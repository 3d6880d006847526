#include "engine/placement/plan.h"

#include <algorithm>

#include "core/base/expect.h"
#include "engine/placement/plan_cost.h"

namespace hctr {
namespace {

using namespace plan;

constexpr double kGain = 0.9;         // a change must reduce the cost to at most this fraction
constexpr double kKeptMemory = 0.85;  // fraction of memory for rows; activations and batches use the remaining memory

/// What is decided about a table before its slots are placed.
struct Layout {
  bool everywhere = false;            // whether the whole table is replicated
  std::vector<bool> on_every_rank{};  // [slots]: which slots are replicated; empty: none
  int64_t pieces = 1;

  bool has_everywhere(size_t slot) const { return everywhere || (!on_every_rank.empty() && on_every_rank[slot]); }
};

/// Slots, or pieces of slots, that are placed together.
struct Unit {
  size_t table = 0, first = 0, count = 1;
  Load whole, spread;  // whole: load of a rank that owns the unit alone; spread: load of every rank if sharded by key
};

class Planner {
 public:
  Planner(const PlanProblem& problem, const std::vector<Layout>& layouts)
      : problem_(problem), layouts_(layouts), loads_(static_cast<size_t>(problem.ranks)) {
    for (size_t t = 0; t < problem.tables.size(); ++t) {
      const PlanTable& table = problem.tables[t];
      const PlacementRule rule = layouts[t].everywhere ? PlacementRule::data_parallel : table.rule;
      placements_.push_back(Placement::without_plan(
          rule, true, static_cast<int64_t>(table.slots.size()) * layouts[t].pieces, problem.ranks));
      placements_.back().pieces = layouts[t].pieces;
    }
    collect();
    spread_the_heaviest();
    for (const Unit& unit : units_) place(unit);
  }

  const std::vector<Placement>& placements() const { return placements_; }
  /// The average seconds per rank that a table costs.
  double seconds_of(size_t table) const { return seconds_of_tables_[table] / static_cast<double>(loads_.size()); }
  /// The value to minimize: first the bytes that exceed the memory of a rank, then the seconds of the busiest rank.
  std::pair<double, double> badness() const {
    double seconds = 0, beyond = 0;
    for (const Load& load : loads_) {
      seconds = std::max(seconds, load.seconds);
      beyond = std::max(beyond, load.bytes - room());
    }
    return {std::max(beyond, 0.0), seconds};
  }

 private:
  double room() const {
    return problem_.speeds.memory > 0 ? kKeptMemory * static_cast<double>(problem_.speeds.memory) : 1e300;
  }

  /// Collects the units whose rank can be chosen, and adds the loads of all other slots.
  void collect() {
    for (size_t t = 0; t < problem_.tables.size(); ++t) {
      const PlanTable& table = problem_.tables[t];
      bool exchanges = false, sums = false;
      for (size_t s = 0; s < table.slots.size(); ++s) {
        if (!layouts_[t].has_everywhere(s)) {
          exchanges = true;
          continue;
        }
        sums = true;
        on_all(t, cost_replicated(problem_, table, s));
        if (!layouts_[t].everywhere)
          std::fill_n(placements_[t].owners.begin() + static_cast<int64_t>(s) * placements_[t].pieces,
                      placements_[t].pieces, Placement::kReplicated);
      }
      on_all(t, {waiting(problem_.speeds, exchanges, sums), 0});
      if (!exchanges) continue;
      const int64_t pieces = placements_[t].pieces;
      const size_t slots = table.slots.size() * static_cast<size_t>(pieces),
                   together = table.identity_by_slot ? 1 : slots;
      for (size_t first = 0; first < slots; first += together) {
        if (placements_[t].replicated(static_cast<int64_t>(first))) continue;
        Unit unit{t, first, together, {}, {}};
        for (size_t s = first; s < first + together; ++s) {
          unit.whole += cost(problem_, table, s, false, pieces);
          unit.spread += cost(problem_, table, s, true, pieces);
        }
        if (table.rule == PlacementRule::distributed)
          spread(unit);
        else if (table.as_without_plan)
          give(unit, first % loads_.size());
        else
          units_.push_back(unit);
      }
    }
    std::stable_sort(units_.begin(), units_.end(),
                     [](const Unit& a, const Unit& b) { return a.whole.seconds > b.whole.seconds; });
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
    give(unit, static_cast<size_t>(rank - loads_.begin()));
    set_owner(unit, static_cast<int32_t>(rank - loads_.begin()));
  }

  bool may_spread(const Unit& unit) const { return problem_.tables[unit.table].rule == PlacementRule::automatic; }
  void give(const Unit& unit, size_t rank) {
    loads_[rank] += unit.whole;
    seconds_of_tables_[unit.table] += unit.whole.seconds;
  }
  void on_all(size_t table, const Load& each) {
    for (Load& load : loads_) load += each;
    seconds_of_tables_[table] += each.seconds * static_cast<double>(loads_.size());
  }
  void spread(const Unit& unit) {
    on_all(unit.table, unit.spread);
    if (!placements_[unit.table].owners.empty()) set_owner(unit, Placement::kSpread);
  }
  void set_owner(const Unit& unit, int32_t owner) {
    for (size_t s = unit.first; s < unit.first + unit.count; ++s) placements_[unit.table].owners[s] = owner;
  }

  const PlanProblem& problem_;
  const std::vector<Layout>& layouts_;
  // [table]: seconds summed over all ranks
  std::vector<double> seconds_of_tables_ = std::vector<double>(problem_.tables.size());
  std::vector<Placement> placements_;
  std::vector<Load> loads_;
  std::vector<Unit> units_;
};

}  // namespace

namespace {

bool may_choose(const PlanProblem& problem, const PlanTable& table) {
  return table.rule == PlacementRule::automatic && !table.as_without_plan && problem.ranks > 1;
}

/// Returns the layout that replicates the whole table, or the layout that replicates only the slots for which this
/// saves a tenth of the work of all ranks. Returns the default layout if replication does not pay.
Layout cheaper_on_every_rank(const PlanProblem& problem, const PlanTable& table) {
  if (!may_choose(problem, table) || !table.may_be_replicated) return {};
  const auto ranks = static_cast<double>(problem.ranks);
  Layout some;
  double saved = 0, all_everywhere = 0, all_whole = 0;
  for (size_t s = 0; s < table.slots.size(); ++s) {
    const double everywhere = ranks * cost_replicated(problem, table, s).seconds,
                 whole = cost(problem, table, s, false, 1).seconds;
    some.on_every_rank.push_back(everywhere < kGain * whole);
    if (some.on_every_rank.back()) saved += whole - everywhere;
    all_everywhere += everywhere;
    all_whole += whole;
  }
  const double sums = ranks * waiting(problem.speeds, false, true),
               exchange = ranks * waiting(problem.speeds, true, false);
  const bool all =
      std::count(some.on_every_rank.begin(), some.on_every_rank.end(), false) == 0 || !table.identity_by_slot;
  if (all_everywhere + sums < kGain * (all_whole + exchange) && (all || all_everywhere - all_whole < exchange - saved))
    return {.everywhere = true};
  return !all && saved > sums ? some : Layout{};
}

/// The best plan so far, and the search for changes that improve the plan.
class Search {
 public:
  explicit Search(const PlanProblem& problem) : problem_(problem), layouts_(problem.tables.size()) {
    for (size_t t = 0; t < layouts_.size(); ++t)
      layouts_[t].everywhere = problem.tables[t].rule == PlacementRule::data_parallel;
    sink(Planner(problem_, layouts_));
  }
  std::vector<Placement> placements() const { return placements_; }

  /// Replicates all tables and slots for which replication is cheaper, in a single change. A separate change for one
  /// small table or slot might not lower the load of the busiest rank, and would be rejected.
  void put_on_every_rank() {
    const std::vector<Layout> before = layouts_;
    for (size_t t = 0; t < layouts_.size(); ++t)
      if (!layouts_[t].everywhere) layouts_[t] = cheaper_on_every_rank(problem_, problem_.tables[t]);
    if (const Planner plan(problem_, layouts_); plan.badness() < least_)
      sink(plan);
    else
      layouts_ = before;
  }

  void improve(size_t t) {
    const PlanTable& table = problem_.tables[t];
    if (!may_choose(problem_, table) || layouts_[t].everywhere) return;
    if (table.may_be_replicated && try_all(t, {{.everywhere = true}})) return;
    const std::vector<bool> now = layouts_[t].on_every_rank,
                            cheaper = cheaper_on_every_rank(problem_, table).on_every_rank;
    std::vector<Layout> cut;
    for (int64_t pieces = 2; table.may_be_cut && pieces <= problem_.ranks; ++pieces) {
      if (table.dim % (4 * pieces) != 0) continue;
      cut.push_back({.on_every_rank = now, .pieces = pieces});
      if (cheaper != now)
        // Also try to replicate the slots of `cheaper`. That may pay only after the other slots are split, because the
        // split balances the ranks.
        cut.push_back({.on_every_rank = cheaper, .pieces = pieces});
    }
    try_all(t, cut);
  }

 private:
  /// Tries layouts of table t, and adopts one if it improves the plan. Layouts count as equally good if they differ by
  /// less than a tenth of the table's own seconds. Among those as good as the best one, adopts the first.
  bool try_all(size_t t, const std::vector<Layout>& layouts) {
    const Layout before = layouts_[t];
    std::vector<Planner> tried;
    for (const Layout& layout : layouts) {
      layouts_[t] = layout;
      tried.emplace_back(problem_, layouts_);
    }
    layouts_[t] = before;
    const auto by_badness = [](const Planner& a, const Planner& b) { return a.badness() < b.badness(); };
    const auto best = std::min_element(tried.begin(), tried.end(), by_badness);
    if (best == tried.end()) return false;
    const double unseen = (1 - kGain) * seconds_[t];
    const auto improves = [&](const Planner& plan) {
      const auto [beyond, seconds] = plan.badness();
      return beyond < least_.first || (beyond == least_.first && seconds <= least_.second - unseen);
    };
    for (size_t i = 0; i < tried.size(); ++i) {
      const auto [beyond, seconds] = tried[i].badness();
      if (beyond > best->badness().first || seconds > best->badness().second + (1 - kGain) * best->seconds_of(t) ||
          !improves(tried[i]))
        continue;
      layouts_[t] = layouts[i];
      sink(tried[i]);
      return true;
    }
    return false;
  }
  void sink(const Planner& plan) {
    placements_ = plan.placements();
    least_ = plan.badness();
    seconds_.clear();
    for (size_t t = 0; t < layouts_.size(); ++t) seconds_.push_back(plan.seconds_of(t));
  }

  const PlanProblem& problem_;
  std::vector<Layout> layouts_;
  std::vector<Placement> placements_;
  std::pair<double, double> least_;
  std::vector<double> seconds_;  // [table]
};

}  // namespace

std::vector<Placement> make_plan(const PlanProblem& problem) {
  HCTR_EXPECT(problem.ranks > 0, "a plan for ", problem.ranks, " ranks");
  Search search(problem);
  search.put_on_every_rank();
  for (size_t t = 0; t < problem.tables.size(); ++t) search.improve(t);
  return search.placements();
}

}  // namespace hctr
