// Rows that every rank has, on 2, 3 and 4 ranks against the same table on one, which knows nothing of them.
#include "embedding/hybrid_embedding.h"

#include "base/files.h"
#include "replicated_rig.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

using ops::Combiner;
using Owners = PlacementRule;

const Replication kFound{Replication::Of::frequent, "", 4, 12}, kAll{.of = Replication::Of::all};

void compare(const ReplicatedCase& one_case, const std::string& what, double tolerance = 1e-6) {
  const ReplicatedOutcome one = outcome_of(1, one_case);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(what + " on " + std::to_string(ranks) + " ranks");
    expect_as_on_one_rank(one, outcome_of(ranks, one_case), tolerance);
  }
}

const std::pair<Combiner, const char*> kCombiners[] = {{Combiner::sum, "sum"}, {Combiner::mean, "mean"}, {Combiner::sqrtn, "sqrtn"}, {Combiner::none, "none"}};

/// Every rule with what it can be asked for.
struct Rule {
  std::string name;
  ops::Optimizer optimizer;
  UpdateType update;
};
std::vector<Rule> rules() {
  using K = ops::Optimizer::Kind;
  std::vector<Rule> all;
  for (const auto& [kind, name] : {std::pair(K::sgd, "sgd"), {K::momentum_sgd, "momentum"}, {K::nesterov, "nesterov"}, {K::adagrad, "adagrad"},
                                   {K::rmsprop, "rmsprop"}, {K::ftrl, "ftrl"}, {K::adam, "adam"}, {K::adamw, "adamw"}})
    for (const UpdateType update : {UpdateType::local, UpdateType::global, UpdateType::lazy_global}) {
      if (update == UpdateType::lazy_global && kind != K::adam) continue;
      ops::Optimizer rule{.kind = kind, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f, .momentum = 0.5f, .initial = 0.1f, .weight_decay = 0.1f};
      all.push_back({std::string(name) + (update == UpdateType::local ? " local" : update == UpdateType::global ? " global" : " lazy"), rule, update});
    }
  ops::Optimizer row_wise{.kind = K::adagrad, .epsilon = 1e-2f};
  row_wise.row_wise = true;
  all.push_back({"row-wise adagrad", row_wise, UpdateType::local});
  return all;
}

class HybridKeys : public ::testing::Test {
 protected:
  /// A file that names keys of which some never come.
  Replication named(bool by_slot, int64_t step = 1) {
    std::string text;
    for (int64_t slot = 0; slot < (by_slot ? 4 : 1); ++slot)
      for (const int64_t key : {0, 1, 2, 5, 17, 39}) text += cat(text.empty() ? "" : ", ", R"({"slot": )", slot, R"(, "key": )", key + slot * step, "}");
    write_text(folder_ / "keys.json", "{\"hottest\": [" + text + "]}");
    return {.of = Replication::Of::frequent, .keys_file = (folder_ / "keys.json").string()};
  }
  TemporaryFolder folder_;
};

TEST_F(HybridKeys, FoundByItselfGiveTheRowsOfOneRank) {
  for (const Owners kind : {Owners::localized, Owners::distributed})
    for (const auto& [combiner, name] : kCombiners)
      for (const int most_keys : {1, 3}) {
        if (combiner != Combiner::sum && most_keys == 1) continue;
        compare({.kind = kind, .combiner = combiner, .most_keys = most_keys, .replication = kFound}, cat(name, " of ", most_keys));
      }
}

TEST_F(HybridKeys, OfAFileGiveTheRowsOfOneRank) {
  for (const auto& [combiner, name] : kCombiners) compare({.combiner = combiner, .replication = named(true)}, name);
  compare({.kind = Owners::distributed, .combiner = Combiner::mean, .replication = named(false)}, "distributed");
}

TEST_F(HybridKeys, EveryOptimizerKeepsItsStates) {
  for (const Rule& rule : rules())
    for (const Replication& replication : {kFound, named(true)})
      compare({.optimizer = rule.optimizer, .update = rule.update, .replication = replication}, rule.name, 1e-5);
}

TEST_F(HybridKeys, MayBeDirectKeys) {
  for (const Owners kind : {Owners::localized, Owners::distributed}) compare({.kind = kind, .replication = kFound, .direct = true}, "found");
  const ops::Optimizer adamw{.kind = ops::Optimizer::Kind::adamw, .epsilon = 1e-3f, .weight_decay = 0.1f};
  compare({.optimizer = adamw, .update = UpdateType::global, .replication = named(true, 40), .direct = true}, "of a file", 1e-5);
}

TEST_F(HybridKeys, TheChoiceDoesNotDependOnTheNumberOfRanks) {
  const ReplicatedCase one_case{.replication = kFound};
  const RowCopies two = outcome_of(2, one_case, 5).replicas[0];
  EXPECT_EQ(two.keys.size(), 12u);
  for (const int ranks : {3, 4}) {
    const RowCopies many = outcome_of(ranks, one_case, 5).replicas[0];
    EXPECT_EQ(many.keys, two.keys);
    EXPECT_EQ(many.slots, two.slots);
  }
  EXPECT_TRUE(outcome_of(2, one_case, 4).replicas[0].empty()) << "four steps are counted first";
}

TEST_F(HybridKeys, RowsOfTwoBytesAreRoundedAsOnOneRank) {
  // Vectors that are read back from two bytes: a last bit of a sum may turn a rounding, of few.
  for (const DType storage : {DType::f16, DType::bf16}) {
    const ReplicatedCase one_case{.storage = storage, .replication = kFound};
    const ReplicatedOutcome one = outcome_of(1, one_case, 8), many = outcome_of(3, one_case, 8);
    ASSERT_EQ(many.rows.keys, one.rows.keys);
    size_t different = 0;
    for (size_t i = 0; i < one.rows.vectors.size(); ++i) different += one.rows.vectors[i] != many.rows.vectors[i];
    EXPECT_LT(different, one.rows.vectors.size() / 100) << name_of(storage);
    expect_equal_bits(many.replicas[0], many.replicas[2], "replicas");
  }
}

TEST_F(HybridKeys, RowsGoOnOnAnotherNumberOfRanks) {
  const ops::Optimizer adam{.kind = ops::Optimizer::Kind::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f};
  for (const Replication& replication : {kFound, named(true)}) {
    const ReplicatedCase one_case{.optimizer = adam, .replication = replication};
    const ReplicatedOutcome before = outcome_of(3, one_case, 6), one = outcome_of(1, one_case, 10, &before);
    for (const int ranks : {2, 4}) expect_as_on_one_rank(one, outcome_of(ranks, one_case, 10, &before), 1e-5);
  }
}

TEST_F(HybridKeys, OfAFileMustBePossible) {
  const auto message = [&](const std::string& text, const ReplicatedCase& one_case = {}) {
    write_text(folder_ / "keys.json", text);
    ReplicatedCase with = one_case;
    with.replication = {.of = Replication::Of::frequent, .keys_file = (folder_ / "keys.json").string()};
    std::string all = message_of(hctr::Kind::data, [&] { outcome_of(2, with, 1); });
    const size_t at = all.find("keys.json");
    all = at == all.npos ? all : all.substr(at + 10);
    return all.substr(0, all.find("\n"));
  };
  EXPECT_EQ(message("{}").substr(0, 25), " names no frequent keys: ");
  EXPECT_EQ(message(R"({"hottest": [{"key": 3}]})"), R"(: entry 0 of "hottest" has no "slot" that is a whole number)");
  EXPECT_EQ(message(R"({"hottest": [{"slot": 4, "key": 3}]})"), R"(: entry 0 of "hottest": slot 4 does not exist; there are 4)");
  EXPECT_EQ(message(R"({"hottest": [{"slot": 1, "key": 3}, {"slot": 1, "key": 3}]})"), ": key 3 of slot 1 stands there twice");
  EXPECT_EQ(message(R"({"hottest": [{"slot": 1, "key": 3}]})", {.direct = true}),
            ", frequent keys of table 'small': key 3 of slot 1 is outside the 40 keys from 40 to 79 that \"slot_size_array\" gives the slot");
}

TEST(ReplicatedEmbeddingTest, AWholeTableOnEveryRankGivesTheRowsOfOneRank) {
  for (const Owners kind : {Owners::localized, Owners::distributed})
    for (const auto& [combiner, name] : kCombiners) compare({.kind = kind, .combiner = combiner, .replication = kAll, .direct = true}, name);
  compare({.most_keys = 1, .replication = kAll, .direct = true}, "one-hot");
}

TEST(ReplicatedEmbeddingTest, EveryOptimizerKeepsItsStates) {
  for (const Rule& rule : rules()) compare({.optimizer = rule.optimizer, .update = rule.update, .replication = kAll, .direct = true}, rule.name, 1e-5);
}

TEST(ReplicatedEmbeddingTest, RowsGoOnOnAnotherNumberOfRanks) {
  const ReplicatedCase one_case{.replication = kAll, .direct = true};
  const ReplicatedOutcome before = outcome_of(3, one_case, 6), one = outcome_of(1, one_case, 10, &before);
  for (const int ranks : {2, 4}) expect_as_on_one_rank(one, outcome_of(ranks, one_case, 10, &before), 1e-6);
}

}  // namespace
}  // namespace hctr::test
