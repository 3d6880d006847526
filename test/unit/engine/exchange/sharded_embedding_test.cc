// An embedding on 2, 3 and 4 ranks compared with one rank: vectors, rows after training, evaluation, and import and
// export of rows.
#include "engine/exchange/rank_embedding.h"

#include <gtest/gtest.h>

#include "config/sections/optimizer_catalog.h"
#include "core/base/platform.h"
#include "support/plain_optimizer.h"
#include "unit/engine/exchange/sharded_rig.h"

namespace hctr::test {
namespace {

constexpr int64_t kRange = 40;  // keys per slot that have rows
constexpr int64_t kBatch = 13;  // samples of all ranks; 13 do not divide evenly, so some ranks have padding

enum class Where {
  by_slot,
  by_key,
  mixed,
  cut,
  cut_whole,
  some_everywhere,
  some_everywhere_and_cut,
  some_everywhere_or_whole
};

struct PlacedCase {
  Where where = Where::by_slot;
  ops::Combiner combiner = ops::Combiner::sum;
  int64_t slots = 5;
  int most_keys = 3;
  ops::Optimizer optimizer{.kind = ops::Optimizer::Kind::sgd};
  UpdateType update = UpdateType::local;
  bool direct = false;   // keys are in fixed ranges, and all rows exist from the start
  bool is_long = false;  // vectors are long enough for copy engines

  Placement placement(int64_t ranks) const {
    Placement all = Placement::without_plan(
        where == Where::by_key ? PlacementRule::distributed : PlacementRule::localized, true, slots, ranks);
    const auto last = static_cast<int32_t>(ranks - 1);
    if (where == Where::mixed)
      for (size_t s = 0; s < all.owners.size(); ++s)
        all.owners[s] = s % 3 == 0 ? Placement::kSpread : s % 3 == 1 ? last : 0;
    if (where == Where::cut || where == Where::cut_whole) {  // two pieces per row; the owners vary from slot to slot
      all.pieces = ranks > 1 ? 2 : 1;
      all.owners.clear();
      for (int64_t s = 0; s < all.pieces * slots; ++s)
        all.owners.push_back(where == Where::cut && s % 5 == 4 ? Placement::kSpread : static_cast<int32_t>(s % ranks));
    }
    if (ranks > 1 && where >= Where::some_everywhere) {
      const bool spread = where != Where::some_everywhere_or_whole;
      all.pieces = where == Where::some_everywhere_and_cut ? 2 : 1;
      all.owners.clear();
      for (int64_t s = 0; s < all.pieces * slots; ++s)
        all.owners.push_back(s / all.pieces % 2 == 0         ? Placement::kReplicated
                             : s / all.pieces == 1 && spread ? Placement::kSpread
                                                             : static_cast<int32_t>(s % ranks));
    }
    return all;
  }

  ShardedRun run(int steps) const {
    const bool is_cut = where == Where::cut || where == Where::cut_whole || where == Where::some_everywhere_and_cut;
    ShardedRun run{.spec = small_spec((is_cut ? 8 : 6) * (is_long ? 8 : 1), slots, kBatch),
                   .most_keys = most_keys,
                   .loss_scale = 4,
                   .planned = [*this](int64_t ranks) { return placement(ranks); }};
    run.spec.identity_by_slot = where != Where::by_key;
    run.spec.combiner = combiner;
    if (combiner == ops::Combiner::none) run.spec.slot_keys.assign(static_cast<size_t>(slots), most_keys);
    run.spec.optimizer = optimizer;
    run.spec.update = update;
    if (direct) run.slot_sizes.assign(static_cast<size_t>(slots), kRange);
    std::mt19937_64 random(11);
    const auto bags_of = [&](int64_t vocabulary, bool training) {
      Bags bags = random_bags(run.spec, kBatch, most_keys, vocabulary, random);
      for (size_t s = 0; s < bags.size(); ++s)
        for (auto& bag : bags[s])
          for (int64_t& key : bag)
            if (direct)
              key += static_cast<int64_t>(s) * kRange;
            else if (training && key % 3 == 0)
              key = -key;
      return bags;
    };
    for (int t = 0; t < steps; ++t) run.batches.push_back(bags_of(30, true));
    run.evaluated = bags_of(kRange, false);  // some of these keys have no row
    return run;
  }
};

const std::string kPlaces[] = {"by slot",
                               "by key",
                               "mixed",
                               "cut",
                               "cut, each piece whole",
                               "some on every rank",
                               "some on every rank, others cut",
                               "some on every rank, others whole"};
std::string name_of_place(Where where) { return kPlaces[static_cast<size_t>(where)]; }
constexpr Where kEverywhere[] = {Where::by_slot, Where::by_key, Where::mixed, Where::cut};

ShardedOutcome outcome_on(int ranks, const PlacedCase& placed, int steps = 20, const RowCopies* start = nullptr) {
  return run_sharded(ranks, placed.run(steps), start);
}

/// `exactly`: compares bit by bit.
void compare_placed(const PlacedCase& placed, bool exactly, const std::string& what, double tolerance = 1e-6) {
  const ShardedOutcome one = outcome_on(1, placed);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(what + " on " + std::to_string(ranks) + " ranks");
    const ShardedOutcome many = outcome_on(ranks, placed);
    EXPECT_EQ(many.row_count, static_cast<int64_t>(one.rows.keys.size()));
    if (exactly)
      expect_equal(many, one);
    else
      expect_near(one, many, tolerance);
  }
}

const ops::Combiner kCombiners[] = {ops::Combiner::sum, ops::Combiner::mean, ops::Combiner::sqrtn, ops::Combiner::none};
const std::string kNames[] = {"sum", "mean", "sqrtn", "none"};

TEST(ShardedEmbedding, LocalizedPoolsAsOneRankDoesBitByBit) {
  for (size_t c = 0; c < 3; ++c) compare_placed({.combiner = kCombiners[c]}, true, kNames[c]);
}

TEST(ShardedEmbedding, OneHotIsAsOnOneRankBitByBit) {
  for (const Where where : kEverywhere)
    compare_placed({.where = where, .most_keys = 1}, true, "one-hot, " + name_of_place(where));
}

TEST(ShardedEmbedding, LongVectorsAreAsOnOneRank) {
  for (const Where where : {Where::by_slot, Where::cut_whole})
    for (const int64_t slots : {5, 6})  // 6 slots divide evenly among 2 and 3 ranks
      compare_placed({.where = where, .slots = slots, .most_keys = 1, .is_long = true}, true,
                     cat("long, ", slots, " slots ", name_of_place(where)));
  compare_placed({.combiner = ops::Combiner::none, .is_long = true}, false, "long sequences");
  compare_placed({.where = Where::some_everywhere_or_whole, .most_keys = 1, .direct = true, .is_long = true}, false,
                 "long, some on every rank");
}

TEST(ShardedEmbedding, CopyEnginesSendGradientsThatGoWholeToOneOwner) {
  const auto by_engines = [](const PlacedCase& placed) { return outcome_on(2, placed, 1).by_engines; };
  for (const Where where : {Where::by_slot, Where::cut_whole})
    EXPECT_TRUE(by_engines({.where = where, .most_keys = 1, .is_long = true})) << name_of_place(where);
  EXPECT_TRUE(by_engines({.is_long = true})) << "a sum's gradient is that of each key";
  EXPECT_FALSE(by_engines({.most_keys = 1})) << "short";
  EXPECT_FALSE(by_engines({.combiner = ops::Combiner::mean, .is_long = true})) << "weighted";
  for (const Where where : {Where::by_key, Where::mixed, Where::cut})
    EXPECT_FALSE(by_engines({.where = where, .most_keys = 1, .is_long = true})) << name_of_place(where);
  ShardedRun run = PlacedCase{.most_keys = 1, .is_long = true}.run(1);
  run.spec.replication = {.of = Replication::Of::frequent, .steps = 2, .most_rows = 20};
  EXPECT_FALSE(run_sharded(2, run).by_engines) << "frequent keys are not sent";
}

TEST(ShardedEmbedding, VectorsAreTheSameBitByBitWhicheverWayTheyGo) {
  const auto compare_ways = [](ShardedRun run, bool possible, const std::string& what) {
    for (const int ranks : {2, 3}) {
      if (kSanitized && ranks == 2) continue;  // sanitizers need one case per code path
      SCOPED_TRACE(what + " on " + std::to_string(ranks) + " ranks");
      run.go = VectorsGo::straight;
      const ShardedOutcome straight = run_sharded(ranks, run);
      EXPECT_EQ(straight.straight, possible);
      for (const VectorsGo go : {VectorsGo::to_parts, VectorsGo::sent, VectorsGo::to_hosts, VectorsGo::to_ranks}) {
        if (go == VectorsGo::to_hosts && ranks == 2) continue;  // both ranks are on one host
        run.go = go;
        const ShardedOutcome outcome = run_sharded(ranks, run);
        expect_equal(straight, outcome);
        EXPECT_EQ(outcome.between_hosts.sent > 0, go >= VectorsGo::to_hosts);
        EXPECT_LE(outcome.between_hosts.sent, outcome.between_hosts.of_full_size);
      }
    }
  };
  for (const Where where : {Where::by_slot, Where::by_key, Where::mixed, Where::cut, Where::cut_whole,
                            Where::some_everywhere, Where::some_everywhere_and_cut})
    for (size_t c = 0; c < 4; ++c)
      for (const int most_keys : {1, 3}) {
        const PlacedCase placed{.where = where,
                                .combiner = kCombiners[c],
                                .most_keys = most_keys,
                                .direct = where >= Where::some_everywhere,
                                .is_long = most_keys == 1 && c % 2 == 0};
        ShardedRun run = placed.run(5);
        const bool one_key = most_keys == 1 || kCombiners[c] == ops::Combiner::none,
                   whole = where == Where::by_slot || where == Where::cut_whole;
        compare_ways(run, one_key || (whole && kCombiners[c] == ops::Combiner::sum),
                     kNames[c] + ", " + name_of_place(where));
        if (run.spec.combiner != ops::Combiner::none &&
            where < Where::cut) {  // only these placements support frequent keys
          run.spec.replication = {.of = Replication::Of::frequent, .steps = 2, .most_rows = 20};
          compare_ways(run, one_key, kNames[c] + ", frequent keys everywhere, " + name_of_place(where));
        }
      }
}

TEST(ShardedEmbedding, SumsPartsOfBagsInTheOrderOfRanks) {
  for (const Where where : {Where::by_key, Where::mixed, Where::cut})
    for (size_t c = 0; c < 3; ++c)
      compare_placed({.where = where, .combiner = kCombiners[c]}, false, kNames[c] + ", " + name_of_place(where));
}

TEST(ShardedEmbedding, SequencesAreNotPooled) {
  for (const Where where : kEverywhere)
    compare_placed({.where = where, .combiner = ops::Combiner::none}, false, name_of_place(where));
}

TEST(ShardedEmbedding, OptimizersKeepTheirStatesWithTheRows) {
  for (const Where where : kEverywhere)
    for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
      PlacedCase placed{.where = where, .update = update};
      placed.optimizer = {.kind = ops::Optimizer::Kind::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
      compare_placed(placed, where == Where::by_slot, "adam, " + name_of_place(where));
    }
  for (const OptimizerType& type : optimizer_catalog()) {
    PlacedCase placed{.where = Where::mixed};
    placed.optimizer = example_rule(type.kind);
    compare_placed(placed, false, type.name, 1e-5);
  }
  PlacedCase row_wise{.where = Where::mixed};
  row_wise.optimizer = {.kind = ops::Optimizer::Kind::adagrad, .epsilon = 1e-2f};
  row_wise.optimizer.row_wise = true;
  compare_placed(row_wise, false, "row-wise adagrad");
}

TEST(ShardedEmbedding, RowsOfKnownKeysAreWhereThePlanHasThem) {
  for (const Where where : kEverywhere) {
    const PlacedCase placed{.where = where, .most_keys = 1, .direct = true};
    compare_placed(placed, true, name_of_place(where));
    EXPECT_EQ(outcome_on(3, placed, 1).row_count, placed.slots * kRange);
  }
}

TEST(ShardedEmbedding, EveryRankMayHaveSomeSlotsWhileOthersHaveOwners) {
  using K = ops::Optimizer::Kind;
  for (const Where where : {Where::some_everywhere, Where::some_everywhere_and_cut}) {
    for (size_t c = 0; c < 4; ++c)
      compare_placed({.where = where, .combiner = kCombiners[c], .direct = true}, false,
                     kNames[c] + ", " + name_of_place(where));
    const auto updates = {std::pair{K::adagrad, UpdateType::local},
                          {K::adam, UpdateType::local},
                          {K::adam, UpdateType::global},
                          {K::adam, UpdateType::lazy_global}};
    for (const auto& [kind, update] : updates) {
      PlacedCase placed{.where = where, .update = update, .direct = true};
      placed.optimizer = {.kind = kind, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
      compare_placed(placed, false,
                     name_of_place(where) + cat(", optimizer ", static_cast<int>(kind), " ", static_cast<int>(update)),
                     1e-5);
    }
    const PlacedCase placed{.where = where, .direct = true};
    const ShardedOutcome many = outcome_on(3, placed);
    EXPECT_EQ(many.row_count, placed.slots * kRange);
    EXPECT_EQ(many.replicas[0].keys.size(), 3u * kRange) << "of slots 0, 2 and 4";
    for (const RowCopies& replica : many.replicas) expect_equal_rows(replica, many.replicas[0]);
    const ShardedOutcome one = outcome_on(1, placed, 3, &many.rows);
    for (const int ranks : {2, 4}) expect_near(one, outcome_on(ranks, placed, 3, &many.rows), 1e-6);
  }
}

TEST(ShardedEmbedding, AKeyOutsideASlotThatEveryRankHasIsNamed) {
  ShardedRun run = PlacedCase{.where = Where::some_everywhere, .direct = true}.run(3);
  run.batches[1][2][5] = {1000};  // no rank owns the slot, so only the rank with the sample sees the key
  std::string message;
  try {
    run_sharded(2, run);
  } catch (const Error& error) {  // thrown by the rank with the sample, or by a rank that received its error
    message = error.what();
  }
  EXPECT_NE(message.find("key 1000 of slot 2 is outside the 40 keys from 80 to 119"), std::string::npos) << message;
}

TEST(ShardedEmbedding, RanksWithoutASlotOfTheirOwnServeTheOthers) {
  for (const Where where : kEverywhere)
    compare_placed({.where = where, .slots = 1}, where == Where::by_slot, "one slot, " + name_of_place(where));
}

TEST(ShardedEmbedding, RowsOfOneRankAreTakenUpByMany) {
  for (const Where where : kEverywhere) {
    const PlacedCase placed{.where = where, .most_keys = 1};
    const ShardedOutcome before = outcome_on(1, placed, 3), one = outcome_on(1, placed, 3, &before.rows);
    for (const int ranks : {2, 3}) {
      const ShardedOutcome many = outcome_on(ranks, placed, 3, &before.rows);
      EXPECT_EQ(many.rows.keys, one.rows.keys);
      EXPECT_EQ(many.rows.vectors, one.rows.vectors) << ranks << " ranks";
    }
  }
}

TEST(ShardedEmbedding, RowsUnderOnePlanAreTakenUpUnderAnother) {
  const PlacedCase by_slot{.where = Where::by_slot, .most_keys = 1}, mixed{.where = Where::mixed, .most_keys = 1};
  const ShardedOutcome before = outcome_on(3, mixed, 3), one = outcome_on(1, by_slot, 3, &before.rows);
  EXPECT_EQ(before.rows.vectors, outcome_on(1, by_slot, 3).rows.vectors);
  for (const PlacedCase& after : {by_slot, mixed})
    EXPECT_EQ(outcome_on(4, after, 3, &before.rows).rows.vectors, one.rows.vectors);
}

}  // namespace
}  // namespace hctr::test
