// The planner: balance, capacity, ties, sharded slots, and plan files.
#include "engine/placement/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "engine/placement/plan_file.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

constexpr int32_t kSpread = Placement::kSpread;
using Owners = std::vector<int32_t>;

PlanTable table(const std::vector<PlanSlot>& slots, PlacementRule rule = PlacementRule::localized,
                const std::string& name = "t") {
  return {.name = name, .rule = rule, .dim = 16, .row_bytes = 128, .slots = slots};
}

std::vector<PlanSlot> slots_with(const std::vector<double>& keys) {
  std::vector<PlanSlot> slots;
  for (const double n : keys) slots.push_back({.keys = n});
  return slots;
}

PlanProblem problem(int64_t ranks, std::vector<PlanTable> tables, MachineSpeeds speeds = {}) {
  return {.ranks = ranks, .batch = 1000, .speeds = speeds, .tables = std::move(tables)};
}

/// Returns the problem with a batch so large that the fixed cost of an exchange does not matter.
PlanProblem large(PlanProblem of) {
  of.batch = 100000;
  return of;
}

Owners owners(const PlanProblem& of) { return make_plan(of).at(0).owners; }

double busiest(const PlanProblem& of, const std::vector<Placement>& plan) {
  std::vector<double> seconds(static_cast<size_t>(of.ranks));
  for (const RankPlan& share : rank_plans(of, plan)) seconds[static_cast<size_t>(share.rank)] += share.seconds;
  return *std::max_element(seconds.begin(), seconds.end());
}

TEST(PlanTest, EqualSlotsGoRoundTheRanksByNumber) {
  EXPECT_EQ(owners(problem(3, {table(slots_with({1, 1, 1, 1, 1, 1, 1}))})), Owners({0, 1, 2, 0, 1, 2, 0}));
}

TEST(PlanTest, TheHeaviestSlotsComeFirstAndFindTheIdlestRank) {
  EXPECT_EQ(owners(problem(2, {table(slots_with({1, 1, 1, 300}))})), Owners({1, 1, 1, 0}));
}

TEST(PlanTest, TablesShareTheRanks) {
  const std::vector<PlanTable> tables = {table(slots_with({5}), PlacementRule::localized, "a"),
                                         table(slots_with({5}), PlacementRule::localized, "b"),
                                         table(slots_with({5, 5}), PlacementRule::localized, "c")};
  const auto plan = make_plan(problem(4, tables));
  EXPECT_EQ(plan[0].owners, Owners({0}));
  EXPECT_EQ(plan[1].owners, Owners({1}));
  EXPECT_EQ(plan[2].owners, Owners({2, 3}));
}

TEST(PlanTest, NoRankIsBusierThanTheAverageAndOneSlot) {
  std::vector<double> keys;
  for (int i = 0; i < 26; ++i) keys.push_back(1 + (i * 37) % 23);
  for (const int64_t ranks : {1, 2, 3, 4, 7, 26, 40}) {
    const PlanProblem of = problem(ranks, {table(slots_with(keys))});
    const auto plan = make_plan(of);
    double all = 0, heaviest = 0;
    for (size_t s = 0; s < keys.size(); ++s) {
      const PlanProblem one = problem(ranks, {table({of.tables[0].slots[s]})});
      const double seconds = busiest(one, make_plan(one));
      all += seconds;
      heaviest = std::max(heaviest, seconds);
    }
    EXPECT_LE(busiest(of, plan), all / static_cast<double>(ranks) + heaviest) << ranks << " ranks";
    EXPECT_EQ(std::count(plan[0].owners.begin(), plan[0].owners.end(), kSpread), 0);
  }
}

TEST(PlanTest, MoreRanksThanSlotsAndSlotsOfNothing) {
  EXPECT_EQ(owners(problem(5, {table(slots_with({2, 1}))})), Owners({0, 1}));
  EXPECT_EQ(owners(problem(2, {table(slots_with({0, 0, 0}))})), Owners({0, 1, 0}));
  EXPECT_TRUE(make_plan(problem(3, {})).empty());
  EXPECT_EQ(owners(problem(1, {table(slots_with({1, 9}), PlacementRule::automatic)})), Owners({0, 0}));
}

TEST(PlanTest, ASlotThatOutweighsTheRestIsSpreadWhereThatIsAllowed) {
  const auto slots = slots_with({1, 500, 1});
  const PlanProblem whole = problem(4, {table(slots)}), free = problem(4, {table(slots, PlacementRule::automatic)});
  EXPECT_EQ(owners(whole)[1], 0);
  EXPECT_EQ(owners(free)[1], kSpread);
  EXPECT_NE(owners(free)[0], kSpread);
  EXPECT_LT(busiest(free, make_plan(free)), 0.5 * busiest(whole, make_plan(whole)));
}

constexpr MachineSpeeds kSlowLink{.link = 1e9, .rows = 100e9};

// If the slot were sharded, each rank would have to send vectors of the slot.
TEST(PlanTest, ASlotWithOneKeyIsNotSpreadOverASlowLink) {
  EXPECT_EQ(owners(problem(4, {table(slots_with({1}), PlacementRule::automatic)}, kSlowLink)), Owners({0}));
}

TEST(PlanTest, VectorsOfALoneSlotAreCutToPiecesOfFourElementsOrMore) {
  PlanTable one = table(slots_with({1}), PlacementRule::automatic);
  one.may_be_cut = true;
  for (const auto& [ranks, pieces] : {std::pair<int64_t, int64_t>{1, 1}, {2, 2}, {3, 2}, {4, 4}, {9, 4}}) {
    const PlanProblem of = problem(ranks, {one}, kSlowLink);
    const Placement plan = make_plan(of)[0];
    EXPECT_EQ(plan.pieces, pieces) << ranks << " ranks";
    Owners expected;
    for (int32_t p = 0; p < pieces; ++p) expected.push_back(p);
    EXPECT_EQ(plan.owners, expected);
  }
  one.dim = 6;
  EXPECT_EQ(make_plan(problem(2, {one}, kSlowLink))[0].pieces, 1);
  one.dim = 16;
  one.slots = slots_with({1, 1, 1, 1});
  EXPECT_EQ(make_plan(problem(2, {one}, kSlowLink))[0].pieces, 1)
      << "whole slots balance as well, and their keys travel once";
  one.slots = slots_with({1});
  one.rule = PlacementRule::localized;
  EXPECT_EQ(make_plan(problem(2, {one}, kSlowLink))[0].pieces, 1);
}

TEST(PlanTest, VectorsAreCutIntoTheFewestPiecesThatBalance) {
  PlanTable four = table(slots_with({1, 1, 1, 1}), PlacementRule::automatic);
  four.may_be_cut = true;
  four.dim = 64;
  for (const auto& [ranks, pieces] : {std::pair<int64_t, int64_t>{4, 1}, {8, 2}, {16, 4}}) {
    const PlanProblem of = problem(ranks, {four}, kSlowLink);
    const auto plan = make_plan(of);
    EXPECT_EQ(plan[0].pieces, pieces) << ranks << " ranks";
    std::vector<int64_t> held(static_cast<size_t>(ranks));
    for (const int32_t owner : plan[0].owners) ++held.at(static_cast<size_t>(owner));
    EXPECT_EQ(held, std::vector<int64_t>(static_cast<size_t>(ranks), 1)) << "each rank one piece";
  }
}

TEST(PlanTest, MemoryDecidesBeforeTime) {
  MachineSpeeds speeds;
  speeds.memory = 1000 * 128;
  std::vector<PlanSlot> slots = {{.rows = 500, .keys = 1}, {.rows = 500, .keys = 1}, {.rows = 10, .keys = 40}};
  EXPECT_EQ(owners(problem(2, {table(slots)})), Owners({1, 1, 0})) << "time alone";
  EXPECT_EQ(owners(problem(2, {table(slots)}, speeds)), Owners({1, 0, 0})) << "two halves do not fit on one rank";
  slots = {{.rows = 1500, .keys = 1}};  // exceeds the memory of a rank
  EXPECT_EQ(owners(problem(2, {table(slots, PlacementRule::automatic)}, speeds)), Owners({kSpread}));
  EXPECT_EQ(owners(problem(2, {table(slots)}, speeds)), Owners({0}));
}

// A DLRM with 421 GiB on four ranks. One table exceeds the memory of a rank.
TEST(PlanTest, TablesThatTogetherNearlyFillAllRanksFit) {
  PlanTable dlrm = table({}, PlacementRule::automatic);
  for (const int64_t rows :
       {159000000, 156000, 69000, 30000, 81000, 12, 28000,     6000,      250,       154000000, 11800000, 1600000, 40,
        8800,      47600,  600,   16,    3900,  56, 293601280, 102000000, 158000000, 2330000,   51700,    430,     144})
    dlrm.slots.push_back({.rows = rows, .keys = 1, .distinct = std::min(65536.0, static_cast<double>(rows))});
  dlrm.dim = 128;
  dlrm.number_bytes = 2;
  dlrm.row_bytes = 512;
  dlrm.may_be_cut = dlrm.may_be_replicated = true;
  PlanProblem of = problem(4, {dlrm}, {.link = 275e9, .sums = 275e9, .rows = 2200e9, .memory = 142540406784});
  of.batch = 65536;
  std::vector<int64_t> bytes(4);
  for (const RankPlan& share : rank_plans(of, make_plan(of))) bytes[static_cast<size_t>(share.rank)] += share.bytes;
  int64_t rows = 0;
  for (const PlanSlot& slot : dlrm.slots) rows += slot.rows;
  EXPECT_GE(std::accumulate(bytes.begin(), bytes.end(), int64_t{0}), rows * dlrm.row_bytes);
  for (const int64_t on_rank : bytes)
    EXPECT_LT(on_rank, 0.86 * static_cast<double>(of.speeds.memory)) << "of which the plan uses 0.85";
}

TEST(PlanTest, WhatTheConfigFixesStays) {
  PlanTable limited = table(slots_with({9, 1, 1}), PlacementRule::automatic);
  limited.as_without_plan = true;
  EXPECT_EQ(owners(problem(2, {limited})), Owners({0, 1, 0}));
  const auto spread = make_plan(problem(2, {table(slots_with({1, 1}), PlacementRule::distributed)}))[0];
  EXPECT_TRUE(spread.spread(0) && spread.spread(1));
}

TEST(PlanTest, SlotsThatShareRowsStayTogether) {
  PlanTable shared = table(slots_with({1, 7, 1}), PlacementRule::automatic);
  shared.identity_by_slot = false;
  for (const double others : {0.0, 1000.0}) {
    const auto plan =
        make_plan(problem(2, {shared, table(slots_with({others, others}), PlacementRule::localized, "u")}))[0].owners;
    EXPECT_EQ(plan, Owners(3, plan[0])) << others;
  }
}

TEST(PlanTest, ASmallTableWhoseKeysAreKnownIsOnEveryRankWhereThatIsCheaper) {
  for (const bool known : {true, false})
    for (const int64_t rows : {40, 4000000}) {
      PlanTable of = table({{.rows = rows, .keys = 1}, {.rows = rows, .keys = 1}}, PlacementRule::automatic);
      of.may_be_replicated = known;
      const PlanProblem two = problem(4, {of});
      const auto plan = make_plan(two);
      EXPECT_EQ(plan[0].replicated_on(4), known && rows == 40);
      EXPECT_FALSE(make_plan(problem(1, {of}))[0].replicated_on(1));
      EXPECT_EQ(plan_from_json(Json::parse(plan_to_json(two, plan).text(2), "plan.json"), "plan.json", two), plan);
      if (!plan[0].replicated_on(4)) continue;
      for (const RankPlan& share : rank_plans(two, plan)) {
        EXPECT_EQ(share.rows, 80) << "of every rank";
        EXPECT_EQ(share.slots, std::vector<int32_t>({0, 1}));
      }
    }
}

TEST(PlanTest, ManySmallTablesAreOnEveryRankThoughEachIsLittleOfAll) {
  std::vector<PlanTable> tables;
  for (int t = 0; t < 26; ++t) {
    tables.push_back(table({{.rows = 40, .keys = 1}}, PlacementRule::automatic, cat("t", t)));
    tables.back().may_be_replicated = true;
  }
  for (const Placement& placement : make_plan(large(problem(4, tables)))) EXPECT_TRUE(placement.replicated_on(4));
}

TEST(PlanTest, SmallSlotsOfATableAreOnEveryRankWhileLargeOnesHaveOwners) {
  PlanTable of = table(
      {{.rows = 40, .keys = 1}, {.rows = 4000000, .keys = 1}, {.rows = 70, .keys = 1}, {.rows = 9000000, .keys = 1}},
      PlacementRule::automatic);
  EXPECT_FALSE(make_plan(large(problem(2, {of}, kSlowLink)))[0].some_replicated()) << "its keys are not known";
  of.may_be_replicated = true;
  const PlanProblem two = large(problem(2, {of}, kSlowLink));
  const auto plan = make_plan(two);
  constexpr int32_t kReplicated = Placement::kReplicated;
  EXPECT_EQ(plan[0].owners, Owners({kReplicated, 0, kReplicated, 1}));
  EXPECT_EQ(plan_from_json(Json::parse(plan_to_json(two, plan).text(2), "plan.json"), "plan.json", two), plan);
  const auto shares = rank_plans(two, plan);
  EXPECT_EQ(shares[0].slots, std::vector<int32_t>({0, 1, 2}));
  EXPECT_EQ(shares[1].slots, std::vector<int32_t>({0, 2, 3}));
  EXPECT_EQ(shares[1].rows, 9000110);
  of.may_be_cut = true;
  const auto cut = make_plan(large(problem(4, {of}, kSlowLink)))[0];
  EXPECT_EQ(cut.owners, Owners({kReplicated, kReplicated, 0, 1, kReplicated, kReplicated, 2, 3}));
  of.identity_by_slot = false;
  EXPECT_FALSE(make_plan(large(problem(2, {of}, kSlowLink)))[0].some_replicated()) << "slots share rows";
}

TEST(PlanTest, WhatAnEmptyExchangeTakesDecidesForTablesWithLittleToSend) {
  PlanTable tiny = table({{.rows = 4000, .keys = 1}}, PlacementRule::automatic);
  tiny.may_be_replicated = true;
  const auto everywhere = [&](double link_seconds, double sums_seconds) {
    return make_plan(problem(4, {tiny}, {.link_seconds = link_seconds, .sums_seconds = sums_seconds}))[0].replicated_on(
        4);
  };
  EXPECT_TRUE(everywhere(1e-3, 1e-5));
  EXPECT_FALSE(everywhere(1e-5, 1e-3));
}

TEST(PlanTest, SharesAddUpToTheTables) {
  const PlanProblem of =
      problem(3, {table({{.rows = 100, .keys = 1}, {.rows = 50, .keys = 1}, {.rows = 31, .keys = 200}},
                        PlacementRule::automatic)});
  const auto plan = make_plan(of);
  ASSERT_EQ(plan[0].owners[2], kSpread);
  int64_t rows = 0;
  size_t slots = 0;
  for (const RankPlan& share : rank_plans(of, plan)) {
    rows += share.rows;
    slots += share.slots.size();
    EXPECT_EQ(share.spread_slots, 1);
  }
  EXPECT_EQ(rows, 100 + 50 + 3 * 11);  // each rank's share of 31 rows is rounded up to 11
  EXPECT_EQ(slots, 2u);
}

TEST(PlanFile, ReadsBackAsWritten) {
  const PlanTable a = table(slots_with({1, 900, 3}), PlacementRule::automatic, "a"),
                  b = table(slots_with({1, 1}), PlacementRule::distributed, "b");
  const PlanProblem of = problem(3, {a, b});
  const auto plan = make_plan(of),
             read = plan_from_json(Json::parse(plan_to_json(of, plan).text(2), "plan.json"), "plan.json", of);
  EXPECT_EQ(read[0], plan[0]);
  EXPECT_TRUE(read[1].spread(0) && read[1].spread(1));
  EXPECT_NE(plan_text(of, plan).find("keys of 1"), std::string::npos) << plan_text(of, plan);
}

TEST(PlanFile, WhatDoesNotFitIsNamed) {
  const PlanProblem of = problem(2, {table(slots_with({1, 1}), PlacementRule::localized, "a")});
  const auto message = [&](const std::string& tables, const std::string& head = R"("schema": 1, "ranks": 2)",
                           bool by_slot = true) {
    PlanProblem judged = of;
    judged.tables[0].identity_by_slot = by_slot;
    return message_of(Kind::config, [&] {
      plan_from_json(Json::parse("{" + head + R"(, "tables": [)" + tables + "]}", "p.json"), "p.json", judged);
    });
  };
  const auto of_known = [&](const std::string& tables) {
    PlanProblem known = of;
    known.tables[0].may_be_replicated = known.tables[0].may_be_cut = true;
    return message_of(Kind::config, [&] {
      plan_from_json(Json::parse(R"({"schema": 1, "ranks": 2, "tables": [)" + tables + "]}", "p.json"), "p.json",
                     known);
    });
  };
  const std::string good = R"({"name": "a", "pieces": 1, "owners": [0, "all"]})";
  EXPECT_NO_THROW(
      plan_from_json(Json::parse(R"({"schema": 1, "ranks": 2, "tables": [)" + good + "]}", "p.json"), "p.json", of));
  const std::pair<std::string, std::string> cases[] = {
      {message(good, R"("schema": 2, "ranks": 2)"), "is of schema 2"},
      {message(good, R"("schema": 1, "ranks": 4)"), "is for 4 ranks, but this run is on 2"},
      {message(good, R"("schema": 1)"), "has no \"ranks\""},
      {message(""), "has no table 'a'"},
      {message(good + R"(, {"name": "b", "pieces": 1, "owners": []})"), "has 2 tables, but the config has 1"},
      {message(R"({"name": "a", "pieces": 1, "owners": [0]})"),
       "has 1 owners for table 'a', but the config's slots need 2"},
      {message(R"({"name": "a", "pieces": 1, "owners": [0, 2]})"),
       "assigns a slot of table 'a' to 2; an owner is a rank from 0 to 1, or \"all\""},
      {message(R"({"name": "a", "pieces": 1, "owners": [0, "some"]})"), "to \"some\""},
      {message(good, R"("schema": 1, "ranks": 2)", false), "to different owners, although the slots share rows"},
      {message(R"({"name": "a", "owners": "every rank"})"), "which its \"placement\" or its index does not allow"},
      {message(R"({"name": "a", "pieces": 1, "owners": [0, "every rank"]})"),
       "slots of table 'a', which its \"placement\" or its index does not allow"},
      {of_known(R"({"name": "a", "pieces": 1, "owners": ["every rank", "every rank"]})"),
       "write \"owners\": \"every rank\" instead"},
      {of_known(R"({"name": "a", "pieces": 2, "owners": ["every rank", 1, 1, 0]})"),
       "some pieces of slot 0 of table 'a', but not all"},
      {message(R"({"name": "a", "pieces": 2, "owners": [0, 1, 1, 0]})"),
       "into 2 pieces, but these rows cannot be split"},
  };
  for (const auto& [got, expected] : cases) {
    EXPECT_NE(got.find(expected), std::string::npos) << got;
    EXPECT_NE(got.find("the plan 'p.json'"), std::string::npos) << got;
  }
}

}  // namespace
}  // namespace hctr::test
