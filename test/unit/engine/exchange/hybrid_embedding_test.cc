// Replicated rows on 2, 3 and 4 ranks, compared with the same table on one rank without replication.
#include "engine/exchange/hybrid_embedding.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "config/sections/optimizer_catalog.h"
#include "core/base/files.h"
#include "support/message_of.h"
#include "support/plain_optimizer.h"
#include "support/temporary_folder.h"
#include "unit/engine/exchange/sharded_rig.h"

namespace hctr::test {
namespace {

using ops::Combiner;

constexpr int64_t kKeysPerSlot = 40;  // keys per slot; if slots share rows, keys of all slots
const Replication kFound{Replication::Of::frequent, "", 4, 12}, kOnAllRanks{.of = Replication::Of::all};

struct ReplicatedCase {
  PlacementRule kind = PlacementRule::localized;
  Combiner combiner = Combiner::sum;
  int most_keys = 3;
  ops::Optimizer optimizer{.kind = ops::Optimizer::Kind::sgd};
  UpdateType update = UpdateType::local;
  DType storage = DType::f32;
  Replication replication{};
  bool direct = false;

  ShardedRun run(int steps) const {
    ShardedRun run{.kind = kind,
                   .spec = small_spec(6, 4, 13),
                   .most_keys = most_keys,
                   .loss_scale = 4,
                   .skipped = 3};  // 13 samples do not divide evenly among ranks, so some ranks have padding
    run.spec.identity_by_slot = kind == PlacementRule::localized;
    run.spec.combiner = combiner;
    if (combiner == Combiner::none) run.spec.slot_keys.assign(4, most_keys);
    run.spec.optimizer = optimizer;
    run.spec.update = update;
    run.spec.storage = storage;
    run.spec.replication = replication;
    if (direct) run.slot_sizes.assign(4, kKeysPerSlot);
    std::mt19937_64 random(11);
    const auto bags_of = [&](int64_t vocabulary) {
      Bags bags = random_bags(run.spec, run.spec.samples, most_keys, vocabulary, random);
      for (auto& of_slot : bags)
        for (size_t b = 0; b < of_slot.size(); b += 2)
          if (!of_slot[b].empty()) of_slot[b][0] = 0;  // so that key 0 is frequent enough for replication on four ranks
      for (size_t s = 0; direct && run.spec.identity_by_slot && s < bags.size(); ++s)
        for (auto& bag : bags[s])
          for (int64_t& key : bag) key += static_cast<int64_t>(s) * kKeysPerSlot;
      return bags;
    };
    for (int t = 0; t < steps; ++t) run.batches.push_back(bags_of(kKeysPerSlot - 5));
    run.evaluated = bags_of(kKeysPerSlot);  // the last keys of the vocabulary have no row
    return run;
  }
};

ShardedOutcome outcome_of(int ranks, const ReplicatedCase& replicated, int steps = 20,
                          const RowCopies* start = nullptr) {
  return run_sharded(ranks, replicated.run(steps), start);
}

/// Vectors, rows and states equal those of one rank within `tolerance`. The replicas on all ranks are equal bit by bit.
void expect_as_on_one_rank(const ShardedOutcome& one, const ShardedOutcome& many, double tolerance) {
  expect_near(one, many, tolerance);
  EXPECT_EQ(many.row_count, static_cast<int64_t>(one.rows.keys.size()));
  EXPECT_FALSE(many.replicas[0].empty());
  for (size_t r = 1; r < many.replicas.size(); ++r)
    expect_equal_rows(many.replicas[0], many.replicas[r], "rank " + std::to_string(r));
}

void compare_replicated(const ReplicatedCase& replicated, const std::string& what, double tolerance = 1e-6) {
  const ShardedOutcome one = outcome_of(1, replicated);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(what + " on " + std::to_string(ranks) + " ranks");
    expect_as_on_one_rank(one, outcome_of(ranks, replicated), tolerance);
  }
}

const std::pair<Combiner, const char*> kNamedCombiners[] = {
    {Combiner::sum, "sum"}, {Combiner::mean, "mean"}, {Combiner::sqrtn, "sqrtn"}, {Combiner::none, "none"}};

/// An optimizer with its supported update types.
struct NamedRule {
  std::string name;
  ops::Optimizer optimizer;
  UpdateType update;
};
std::vector<NamedRule> rules() {
  using K = ops::Optimizer::Kind;
  std::vector<NamedRule> all;
  for (const OptimizerType& type : optimizer_catalog())
    for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
      if (update == UpdateType::lazy_global && type.kind != K::adam) continue;
      all.push_back({type.name + (update == UpdateType::local    ? " local"
                                  : update == UpdateType::global ? " global"
                                                                 : " lazy"),
                     example_rule(type.kind), update});
    }
  ops::Optimizer row_wise{.kind = K::adagrad, .epsilon = 1e-2f};
  row_wise.row_wise = true;
  all.push_back({"row-wise adagrad", row_wise, UpdateType::local});
  return all;
}

class HybridKeys : public ::testing::Test {
 protected:
  /// Returns a Replication with frequent keys from a file. Some of these keys never occur in batches.
  Replication named(bool by_slot, int64_t step = 1) {
    std::string text;
    for (int64_t slot = 0; slot < (by_slot ? 4 : 1); ++slot)
      for (const int64_t key : {0, 1, 2, 5, 17, 39})
        text += cat(text.empty() ? "" : ", ", R"({"slot": )", slot, R"(, "key": )", key + slot * step, "}");
    write_text(folder_ / "keys.json", "{\"hottest\": [" + text + "]}");
    return {.of = Replication::Of::frequent, .keys_file = (folder_ / "keys.json").string()};
  }
  TemporaryFolder folder_;
};

TEST_F(HybridKeys, FoundByItselfGiveTheRowsOfOneRank) {
  for (const PlacementRule kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const auto& [combiner, name] : kNamedCombiners)
      for (const int most_keys : {1, 3}) {
        if (combiner != Combiner::sum && most_keys == 1) continue;
        compare_replicated({.kind = kind, .combiner = combiner, .most_keys = most_keys, .replication = kFound},
                           cat(name, " of ", most_keys));
      }
}

TEST_F(HybridKeys, OfAFileGiveTheRowsOfOneRank) {
  for (const auto& [combiner, name] : kNamedCombiners)
    compare_replicated({.combiner = combiner, .replication = named(true)}, name);
  compare_replicated({.kind = PlacementRule::distributed, .combiner = Combiner::mean, .replication = named(false)},
                     "distributed");
}

TEST_F(HybridKeys, EveryOptimizerKeepsItsStates) {
  for (const NamedRule& rule : rules())
    for (const Replication& replication : {kFound, named(true)})
      compare_replicated({.optimizer = rule.optimizer, .update = rule.update, .replication = replication}, rule.name,
                         1e-5);
}

TEST_F(HybridKeys, MayBeDirectKeys) {
  for (const PlacementRule kind : {PlacementRule::localized, PlacementRule::distributed})
    compare_replicated({.kind = kind, .replication = kFound, .direct = true}, "found");
  const ops::Optimizer adamw{.kind = ops::Optimizer::Kind::adamw, .epsilon = 1e-3f, .weight_decay = 0.1f};
  compare_replicated({.optimizer = adamw, .update = UpdateType::global, .replication = named(true, 40), .direct = true},
                     "of a file", 1e-5);
}

/// A row is frequent if it occurs in a batch at least as many times as there are ranks. This is the rule for f32
/// vectors.
TEST_F(HybridKeys, RowsThatComeAsOftenAsThereAreRanksAreFrequent) {
  const ReplicatedCase replicated{.replication = kFound};
  std::map<std::pair<int64_t, int64_t>, int64_t> occurrences;  // indexed by slot and key
  const ShardedRun run = replicated.run(5);
  for (int64_t t = 0; t < kFound.steps; ++t)
    for (size_t s = 0; s < run.batches[static_cast<size_t>(t)].size(); ++s)
      for (const auto& bag : run.batches[static_cast<size_t>(t)][s])
        for (const int64_t key : bag) ++occurrences[{static_cast<int64_t>(s), key}];
  std::vector<size_t> sizes;
  for (const int ranks : {2, 3, 4}) {
    const RowCopies found = outcome_of(ranks, replicated, 5).replicas[0];
    std::set<std::pair<int64_t, int64_t>> frequent;
    for (size_t i = 0; i < found.keys.size(); ++i) frequent.insert({found.slots[i], found.keys[i]});
    std::set<std::pair<int64_t, int64_t>> expected;
    for (const auto& [row, times] : occurrences)
      if (times >= kFound.steps * ranks) expected.insert(row);
    EXPECT_EQ(frequent, expected) << ranks << " ranks";
    sizes.push_back(frequent.size());
  }
  EXPECT_GT(sizes.front(), sizes.back()) << "else the data do not tell four ranks from two";
  EXPECT_GT(sizes.back(), 0u);
  EXPECT_TRUE(outcome_of(2, replicated, 4).replicas[0].empty()) << "four steps are counted first";
}

TEST_F(HybridKeys, NoMoreRowsAreFrequentThanTheConfigAllows) {
  ReplicatedCase replicated{.replication = kFound};
  replicated.replication.most_rows = 3;
  for (const int ranks : {2, 3}) EXPECT_EQ(outcome_of(ranks, replicated, 5).replicas[0].keys.size(), 3u);
}

TEST_F(HybridKeys, RowsOfTwoBytesAreRoundedAsOnOneRank) {
  // Vectors have a two-byte type, so a different last bit of an f32 sum may change a few roundings.
  for (const DType storage : {DType::f16, DType::bf16}) {
    const ReplicatedCase replicated{.storage = storage, .replication = kFound};
    const ShardedOutcome one = outcome_of(1, replicated, 8), many = outcome_of(3, replicated, 8);
    ASSERT_EQ(many.rows.keys, one.rows.keys);
    size_t different = 0;
    for (size_t i = 0; i < one.rows.vectors.size(); ++i) different += one.rows.vectors[i] != many.rows.vectors[i];
    EXPECT_LT(different, one.rows.vectors.size() / 100) << name_of(storage);
    expect_equal_rows(many.replicas[0], many.replicas[2], "replicas");
  }
}

TEST_F(HybridKeys, RowsGoOnOnAnotherNumberOfRanks) {
  const ops::Optimizer adam{.kind = ops::Optimizer::Kind::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
  for (const Replication& replication : {kFound, named(true)}) {
    const ReplicatedCase replicated{.optimizer = adam, .replication = replication};
    const ShardedOutcome before = outcome_of(3, replicated, 6), one = outcome_of(1, replicated, 10, &before.rows);
    for (const int ranks : {2, 4}) expect_as_on_one_rank(one, outcome_of(ranks, replicated, 10, &before.rows), 1e-5);
  }
}

TEST_F(HybridKeys, OfAFileMustBePossible) {
  const auto message = [&](const std::string& text, const ReplicatedCase& replicated = {}) {
    write_text(folder_ / "keys.json", text);
    ReplicatedCase with = replicated;
    with.replication = {.of = Replication::Of::frequent, .keys_file = (folder_ / "keys.json").string()};
    std::string all = message_of(hctr::Kind::data, [&] { outcome_of(2, with, 1); });
    const size_t at = all.find("keys.json");
    all = at == all.npos ? all : all.substr(at + 10);
    return all.substr(0, all.find("\n"));
  };
  EXPECT_EQ(message("{}").substr(0, 23), " contains no hot keys: ");
  EXPECT_EQ(message(R"({"hottest": [{"key": 3}]})"), R"(: entry 0 of "hottest" lacks the integer "slot")");
  EXPECT_EQ(message(R"({"hottest": [{"slot": 4, "key": 3}]})"),
            R"(: entry 0 of "hottest": slot 4 does not exist; there are 4)");
  EXPECT_EQ(message(R"({"hottest": [{"slot": 1, "key": 3}, {"slot": 1, "key": 3}]})"),
            ": key 3 of slot 1 is listed twice");
  EXPECT_EQ(message(R"({"hottest": [{"slot": 1, "key": 3}]})", {.direct = true}),
            ", frequent keys of table 'small': key 3 of slot 1 is outside the 40 keys from 40 to 79 that "
            "\"slot_size_array\" gives the slot");
}

TEST(ReplicatedEmbeddingTest, AWholeTableOnEveryRankGivesTheRowsOfOneRank) {
  for (const PlacementRule kind : {PlacementRule::localized, PlacementRule::distributed})
    for (const auto& [combiner, name] : kNamedCombiners)
      compare_replicated({.kind = kind, .combiner = combiner, .replication = kOnAllRanks, .direct = true}, name);
  compare_replicated({.most_keys = 1, .replication = kOnAllRanks, .direct = true}, "one-hot");
}

TEST(ReplicatedEmbeddingTest, EveryOptimizerKeepsItsStates) {
  for (const NamedRule& rule : rules())
    compare_replicated({.optimizer = rule.optimizer, .update = rule.update, .replication = kOnAllRanks, .direct = true},
                       rule.name, 1e-5);
}

TEST(ReplicatedEmbeddingTest, RowsGoOnOnAnotherNumberOfRanks) {
  const ReplicatedCase replicated{.replication = kOnAllRanks, .direct = true};
  const ShardedOutcome before = outcome_of(3, replicated, 6), one = outcome_of(1, replicated, 10, &before.rows);
  for (const int ranks : {2, 4}) expect_as_on_one_rank(one, outcome_of(ranks, replicated, 10, &before.rows), 1e-6);
}

}  // namespace
}  // namespace hctr::test
