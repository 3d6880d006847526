// Tests direct keys, two-byte rows, admission and expiry on 2, 3 and 4 ranks. The reference is one rank. If a limit
// applies to each rank, the reference is one table per rank.
#include "unit/engine/exchange/sharded_rig.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

constexpr PlacementRule kShardedRules[] = {PlacementRule::localized, PlacementRule::distributed};

std::string name_of_placement(PlacementRule kind) {
  return kind == PlacementRule::localized ? "localized" : "distributed";
}

TableSpec sharded_spec(PlacementRule kind) {
  TableSpec spec = small_spec(6, 5, 13);  // 13 samples do not divide evenly among ranks, so some have padding
  spec.identity_by_slot = kind == PlacementRule::localized;
  spec.optimizer = {.kind = ops::Optimizer::Kind::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
  return spec;
}

/// A run whose vocabulary drifts, so that old keys do not occur again. Small keys are frequent, and some keys are
/// negative.
ShardedRun drifting(PlacementRule kind, TableSpec spec, int steps, int64_t vocabulary) {
  ShardedRun run{.kind = kind, .spec = std::move(spec)};
  std::mt19937_64 random(17);
  const auto bags_at = [&](int64_t step) {
    Bags bags = random_bags(run.spec, run.spec.samples, run.most_keys, vocabulary, random);
    for (auto& slot : bags)
      for (auto& bag : slot)
        for (int64_t& key : bag) key = (key + 2 * step) * (key % 5 == 0 ? -1 : 1);
    return bags;
  };
  for (int t = 0; t < steps; ++t) {
    run.batches.push_back(bags_at(t));
    run.dys.push_back(random_gradients(run.spec, random));
  }
  run.evaluated = bags_at(steps);
  return run;
}

/// Compares with one rank. Counts must be equal. Values must be equal bit by bit if `exactly`; otherwise within a
/// tolerance, because bags may be summed in a different order.
void expect_as_one_rank(const ShardedRun& run, bool exactly) {
  const ShardedOutcome one = run_sharded(1, run);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(cat(name_of_placement(run.kind), " on ", ranks, " ranks"));
    const ShardedOutcome many = run_sharded(ranks, run);
    if (exactly) {
      expect_equal(many, one);
      continue;
    }
    expect_near(one, many, 1e-6);
  }
}

TEST(ShardedTable, DirectKeysHaveTheRowsOfOneRank) {
  for (const PlacementRule kind : kShardedRules) {
    ShardedRun run = drifting(kind, sharded_spec(kind), 0, 1);
    run.slot_sizes = {12, 5, 1, 20, 7};
    run.most_keys = kind == PlacementRule::localized ? 3 : 1;
    std::mt19937_64 random(4);
    const auto bags_in_ranges = [&] {
      Bags bags = random_bags(run.spec, run.spec.samples, run.most_keys, 1000, random);
      int64_t first = 0;
      for (size_t s = 0; s < bags.size(); first += run.slot_sizes[s++])
        for (auto& bag : bags[s])
          for (int64_t& key : bag) key = first + key % run.slot_sizes[s];
      return bags;
    };
    for (int t = 0; t < 6; ++t) {
      run.batches.push_back(bags_in_ranges());
      run.dys.push_back(random_gradients(run.spec, random));
    }
    run.evaluated = bags_in_ranges();
    EXPECT_EQ(run_sharded(3, run).row_count, 45) << "every key has its row from the start";
    expect_as_one_rank(run, true);
  }
}

TEST(ShardedTable, RowsOfTwoBytesAreRoundedAsOnOneRank) {
  for (const PlacementRule kind : kShardedRules)
    for (const auto& [vectors, states] :
         {std::pair{DType::f16, DType::f32}, {DType::bf16, DType::bf16}, {DType::f32, DType::f16}}) {
      SCOPED_TRACE(cat(name_of(vectors), ", states ", name_of(states)));
      TableSpec spec = sharded_spec(kind);
      spec.storage = vectors;
      spec.state_storage = states;
      ShardedRun run = drifting(kind, spec, 0, 1);
      run.most_keys = kind == PlacementRule::localized ? 3 : 1;
      std::mt19937_64 random(8);
      for (int t = 0; t < 10; ++t) {
        run.batches.push_back(random_bags(spec, spec.samples, run.most_keys, 30, random));
        run.dys.push_back(random_gradients(spec, random));
      }
      run.evaluated = run.batches.front();
      expect_as_one_rank(run, true);
    }
}

TEST(ShardedTable, ExpiredRowsAreThoseOfOneRank) {
  for (const PlacementRule kind : kShardedRules)
    for (const int64_t after : {1, 5, 40}) {
      SCOPED_TRACE(cat("after ", after));
      TableSpec spec = sharded_spec(kind);
      spec.policy.expire_after = after;
      const ShardedRun run = drifting(kind, spec, 60, 20);
      EXPECT_GT(run_sharded(1, run).counts.at("rows_expired"), 50);
      expect_as_one_rank(run, kind == PlacementRule::localized);
    }
}

TEST(ShardedTable, KeysWaitForTheirCountOverAllRanks) {
  for (const PlacementRule kind : kShardedRules)
    for (const int64_t n : {2, 9}) {
      SCOPED_TRACE(cat("min_count ", n));
      TableSpec spec = sharded_spec(kind);
      spec.policy.min_count = n;
      if (n == 9) spec.policy.expire_after = 20;
      spec.combiner = n == 2 ? ops::Combiner::sum : ops::Combiner::mean;
      const ShardedRun run = drifting(kind, spec, 50, 30);
      const ShardedOutcome one = run_sharded(1, run);
      EXPECT_GT(one.counts.at("occurrences_not_admitted"), 100);
      EXPECT_GT(one.row_count, 20);
      expect_as_one_rank(run, kind == PlacementRule::localized);
    }
}

TEST(ShardedTable, ChanceDrawsTheSameKeysOnAnyNumberOfRanks) {
  for (const PlacementRule kind : kShardedRules)
    for (const double p : {0.02, 0.3}) {
      SCOPED_TRACE(cat("probability ", p));
      TableSpec spec = sharded_spec(kind);
      spec.policy.admit_probability = p;
      const ShardedRun run = drifting(kind, spec, 30, 60);
      EXPECT_GT(run_sharded(1, run).counts.at("occurrences_not_admitted"), 100);
      expect_as_one_rank(run, kind == PlacementRule::localized);
    }
}

TEST(ShardedTable, KeysOfSequencesWaitToo) {
  for (const PlacementRule kind : kShardedRules)
    for (const bool by_count : {true, false}) {
      TableSpec spec = sharded_spec(kind);
      spec.combiner = ops::Combiner::none;
      spec.slot_keys.assign(5, 3);
      if (by_count)
        spec.policy.min_count = 4;
      else
        spec.policy.admit_probability = 0.1;
      expect_as_one_rank(drifting(kind, spec, 20, 30), false);
    }
}

TEST(ShardedTable, TheLimitIsThatOfEachRankAndTiesLeaveByKey) {
  for (const PlacementRule kind : kShardedRules)
    for (const WhenFull when : {WhenFull::evict_lru, WhenFull::evict_lfu, WhenFull::ignore})
      for (const int ranks : {2, 3, 4}) {
        SCOPED_TRACE(cat(name_of_placement(kind),
                         when == WhenFull::evict_lru   ? " lru"
                         : when == WhenFull::evict_lfu ? " lfu"
                                                       : " ignore",
                         " on ", ranks, " ranks"));
        TableSpec spec = sharded_spec(kind);
        spec.row_limit = kind == PlacementRule::localized ? 70 : 60 / ranks;
        spec.policy.when_full = when;
        const ShardedRun run = drifting(kind, spec, 60, 25);
        const ShardedOutcome apart = run_owners_apart(ranks, run), many = run_sharded(ranks, run);
        EXPECT_EQ(apart.shared_row, when == WhenFull::ignore);
        EXPECT_GT(apart.counts.at(when == WhenFull::ignore ? "occurrences_ignored" : "rows_evicted"), 50);
        expect_equal(many, apart);
      }
}

TEST(ShardedTable, PoliciesWorkTogetherOnSeveralRanks) {
  for (const PlacementRule kind : kShardedRules) {
    TableSpec spec = sharded_spec(kind);
    spec.row_limit = 50;
    spec.policy = {.when_full = WhenFull::evict_lfu, .expire_after = 30, .min_count = 2, .max_candidates = 60};
    const ShardedRun run = drifting(kind, spec, 80, 25);
    const ShardedOutcome apart = run_owners_apart(2, run);
    EXPECT_GT(apart.counts.at("candidates_dropped"), 0);
    EXPECT_GT(apart.counts.at("rows_evicted"), 0);
    expect_equal(run_sharded(2, run), apart);
  }
}

}  // namespace
}  // namespace hctr::test
