// Admission, expiry and the row limit, compared with a reference table of ordered maps.
#include <gtest/gtest.h>

#include "support/message_of.h"
#include "unit/engine/table/plain_policy.h"

namespace hctr::test {
namespace {

class TablePolicyTest : public OnDevice {};
HCTR_ON_EACH_DEVICE(TablePolicyTest);

TableSpec policy_spec(bool by_slot = true) {
  TableSpec spec = small_spec(5, 3, 8, 8 * 3 * 3 + 5);
  spec.name = "policy";
  spec.identity_by_slot = by_slot;
  spec.optimizer.kind = ops::Optimizer::Kind::adam;
  return spec;
}

/// Bags of a drifting vocabulary, so that old keys do not occur again. Small keys are frequent and repeated, and some
/// keys are negative.
Bags drifting_bags(const TableSpec& spec, int64_t step, int64_t vocabulary, std::mt19937_64& random) {
  Bags bags = random_bags(spec, spec.samples, 3, vocabulary, random);
  for (auto& slot : bags)
    for (auto& bag : slot)
      for (int64_t& key : bag) key = (key + 2 * step) * (key % 5 == 0 ? -1 : 1);
  return bags;
}

int64_t count(TableRig& rig, const std::string& name) {
  const auto counts = rig.table->counts();
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

void expect_counts(TableRig& rig, const PlainPolicyTable& plain) {
  EXPECT_EQ(count(rig, "rows_evicted"), plain.counts.evicted);
  EXPECT_EQ(count(rig, "rows_expired"), plain.counts.expired);
  EXPECT_EQ(count(rig, "occurrences_ignored"), plain.counts.ignored);
  if (rig.spec().policy.min_count > 1 || rig.spec().policy.admit_probability < 1) {
    EXPECT_EQ(count(rig, "occurrences_not_admitted"), plain.counts.not_admitted);
  }
  EXPECT_EQ(count(rig, "candidates_dropped"), plain.counts.candidates_dropped);
}

/// Trains both tables with lookups in between. Compares all outputs, rows, values, states and counts.
PlainPolicyTable compare_policy(Device device, const TableSpec& spec, int steps, int64_t vocabulary) {
  TableRig rig(device, spec, 2);
  PlainPolicyTable plain(spec);
  std::mt19937_64 random(17);
  for (int t = 0; t < steps; ++t) {
    SCOPED_TRACE(cat("step ", t));
    const Bags bags = drifting_bags(spec, t, vocabulary, random);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    plain.begin(t);
    plain.admit(bags, t);
    expect_near(rig.step(bags, dy, 0.02f), plain.forward(bags), 1e-4, "forward");
    plain.update(bags, dy, static_cast<double>(0.02f), 1, t + 1);
    if (t % 7 == 0) {
      const Bags others = drifting_bags(spec, t + 2, 2 * vocabulary, random);
      expect_near(rig.lookup(others), plain.forward(others), 1e-4, "lookup");
    }
    if (t % 20 == 0 || t + 1 == steps) {
      compare_rows(rig, plain, 1e-4);
      expect_counts(rig, plain);
    }
    EXPECT_LE(rig.table->rows(), spec.row_limit > 0 ? spec.row_limit : rig.table->rows());
    if (testing::Test::HasFailure()) break;
  }
  return plain;
}

TEST_P(TablePolicyTest, TheRowsThatLeaveAreThoseOfTheReference) {
  for (const WhenFull when : {WhenFull::evict_lru, WhenFull::evict_lfu})
    for (const bool by_slot : {true, false})
      for (const int64_t limit : {60, 110}) {  // a batch may add up to 77 keys
        SCOPED_TRACE(cat("limit ", limit, by_slot ? " by slot" : "", when == WhenFull::evict_lru ? " lru" : " lfu"));
        TableSpec spec = policy_spec(by_slot);
        spec.row_limit = limit;
        spec.policy.when_full = when;
        EXPECT_GT(compare_policy(GetParam(), spec, 200, 60).counts.evicted, 300);
      }
}

TEST_P(TablePolicyTest, EveryOptimizerStateFollowsItsKey) {
  TableSpec spec = policy_spec();
  spec.row_limit = 100;
  spec.policy.when_full = WhenFull::evict_lru;
  for (const UpdateType update : {UpdateType::global, UpdateType::lazy_global}) {
    spec.update = update;
    EXPECT_GT(compare_policy(GetParam(), spec, 80, 25).counts.evicted, 100);
  }
  spec.update = UpdateType::local;
  spec.optimizer.kind = ops::Optimizer::Kind::adagrad;
  spec.optimizer.initial = 0.3f;
  for (const bool row_wise : {false, true}) {
    spec.optimizer.row_wise = row_wise;
    compare_policy(GetParam(), spec, 80, 25);
  }
  spec.optimizer = {};
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  spec.slot_bounds = {0.5f, 0.01f, 0.2f};
  for (const int64_t dim : {1, 3, 4, 33}) {
    spec.dim = dim;
    compare_policy(GetParam(), spec, 60, 25);
  }
}

TEST_P(TablePolicyTest, GrownTablesAndLargeOnesEvictAlike) {
  TableSpec spec = policy_spec();
  spec.samples = spec.eval_samples = 100;
  spec.key_capacity = spec.eval_key_capacity = 900;
  spec.row_limit = 3000;
  spec.policy.when_full = WhenFull::evict_lfu;
  const PlainPolicyTable plain = compare_policy(GetParam(), spec, 120, 2000);
  EXPECT_GT(plain.counts.evicted, 500);
}

TEST_P(TablePolicyTest, ABatchOfMoreKeysThanTheLimitIsAnError) {
  TableSpec spec = small_spec(2, 1, 4, 4);
  spec.row_limit = 3;
  spec.policy.when_full = WhenFull::evict_lru;
  TableRig rig(GetParam(), spec);
  const std::vector<float> dy(8, 1.0f);
  rig.step({{{1}, {2}, {3}, {3}}}, dy);
  rig.step({{{4}, {4}, {1}, {4}}}, dy);  // the limit of 3 rows counts distinct keys, not key occurrences
  EXPECT_EQ(rig.table->rows(), 3);
  const std::string before = rig.bytes();
  EXPECT_EQ(message_of(Kind::data, [&] { rig.step({{{5}, {6}, {7}, {8}}}, dy); }),
            "table 'small' on rank 0: one batch holds 4 different keys, more than the 3 rows that "
            "\"max_vocabulary_size_per_gpu\" allows, and rows of the batch cannot be evicted; raise the limit, or "
            "train with a smaller \"batchsize\"");
  EXPECT_EQ(rig.bytes(), before) << "the step that did not fit changed the table";
}

TEST_P(TablePolicyTest, TiesLeaveBySlotAndKey) {
  TableSpec spec = small_spec(1, 2, 2, 8);
  spec.identity_by_slot = true;
  spec.row_limit = 4;
  spec.policy.when_full = WhenFull::evict_lfu;
  TableRig rig(GetParam(), spec);
  const std::vector<float> dy(4, 0.0f);
  rig.step({{{9, 9, -3}, {}}, {{-7, 5}, {}}}, dy);  // each key occurs once, except key 9 of slot 0
  rig.step({{{}, {}}, {{100, 101}, {}}}, dy);
  std::vector<std::pair<int32_t, int64_t>> left;
  rig.table->export_rows(false, [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i) left.emplace_back(block.slots[i], block.keys[i]);
  });
  EXPECT_EQ(left, (std::vector<std::pair<int32_t, int64_t>>{{0, 9}, {1, 5}, {1, 100}, {1, 101}}));
}

TEST_P(TablePolicyTest, KeysThatComeTooLateShareARow) {
  for (const bool by_slot : {true, false})
    for (const int64_t limit : {5, 60, 110}) {
      SCOPED_TRACE(cat("limit ", limit, by_slot ? " by slot" : ""));
      TableSpec spec = policy_spec(by_slot);
      spec.row_limit = limit;
      spec.policy.when_full = WhenFull::ignore;
      const PlainPolicyTable plain = compare_policy(GetParam(), spec, 80, 40);
      EXPECT_TRUE(plain.closed());
      EXPECT_GT(plain.counts.ignored, 100);
    }
}

TEST_P(TablePolicyTest, TheSharedRowIsAnyKeysBeforeTheTableIsFullAndUnknownKeysAfter) {
  TableSpec spec = small_spec(2, 1, 2, 4);
  spec.row_limit = 2;
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  spec.policy.when_full = WhenFull::ignore;
  TableRig rig(GetParam(), spec);
  const std::vector<float> zeros(4, 0.0f);
  rig.step({{{0}, {7}}}, zeros);
  EXPECT_EQ(rig.lookup({{{8}, {9}}}), zeros);
  EXPECT_FALSE(rig.table->uses_shared_row());
  const std::vector<float> first = rig.step({{{8}, {9}}}, {1, 1, 1, 1});
  EXPECT_TRUE(rig.table->uses_shared_row());
  EXPECT_EQ(first[0], first[2]);
  const std::vector<float> later = rig.lookup({{{1234}, {0}}});
  EXPECT_NEAR(later[0], first[0] - 2 * 0.1f, 1e-6) << "both occurrences train the shared row";
  EXPECT_NE(later[0], later[2]) << "key 0 has a row of its own";
  EXPECT_EQ(rig.table->rows(), 2);
  EXPECT_EQ(count(rig, "occurrences_ignored"), 2);
}

TEST_P(TablePolicyTest, KeysWaitForTheirCount) {
  for (const int64_t n : {2, 3, 9})
    for (const bool by_slot : {true, false}) {
      SCOPED_TRACE(cat("min_count ", n));
      TableSpec spec = policy_spec(by_slot);
      spec.policy.min_count = n;
      if (n == 3) spec.combiner = ops::Combiner::mean;
      EXPECT_GT(compare_policy(GetParam(), spec, 80, 100).counts.not_admitted, 100);
      spec.policy.max_candidates = 40;
      EXPECT_GT(compare_policy(GetParam(), spec, 80, 100).counts.candidates_dropped, 10);
    }
}

TEST_P(TablePolicyTest, RowsAndCandidatesThatDoNotComeExpire) {
  for (const int64_t after : {1, 5, 40}) {
    SCOPED_TRACE(cat("after ", after));
    TableSpec spec = policy_spec();
    spec.policy.expire_after = after;
    EXPECT_GT(compare_policy(GetParam(), spec, 120, 20).counts.expired, 100);
    spec.policy.min_count = 3;
    const PlainPolicyTable plain = compare_policy(GetParam(), spec, 120, 20);
    EXPECT_GT(plain.counts.expired, 20);
    EXPECT_GT(plain.counts.candidates_dropped, 20);
  }
}

TEST_P(TablePolicyTest, ExpiryMakesRoomInATableThatMayNotGrow) {
  TableSpec spec = small_spec(1, 1, 2, 2);
  spec.row_limit = 6;  // enough for two rows of this batch and four rows of the two steps before
  spec.policy.expire_after = 2;
  TableRig rig(GetParam(), spec);
  for (int64_t key = 0; key < 40; key += 2) {
    rig.step({{{key}, {key + 1}}}, {0, 0});
    EXPECT_LE(rig.table->rows(), 6);
  }
  EXPECT_EQ(count(rig, "rows_expired"), 34);
}

TEST_P(TablePolicyTest, ExpiredCandidatesFreeCapacityForOthers) {
  TableSpec spec = policy_spec();
  spec.policy = {.expire_after = 6, .min_count = 3, .max_candidates = 120};
  const PlainPolicyTable plain = compare_policy(GetParam(), spec, 120, 100);
  EXPECT_GT(plain.counts.expired, 20);
  EXPECT_GT(plain.counts.candidates_dropped, 100);
}

TEST_P(TablePolicyTest, ATableWithoutAPolicyHasNoMarksAndNoGate) {
  Runtime runtime(GetParam(), {.threads = 1, .seed = 7});
  const RowStore store(runtime, small_spec(), 10, 2);
  EXPECT_FALSE(store.rows().arrays().access_stats().any());
  EXPECT_EQ(store.rows().index().view().first_row, 1u);
  TableRig rig(GetParam(), small_spec());
  EXPECT_TRUE(rig.table->counts().empty());
}

TEST_P(TablePolicyTest, PoliciesWorkTogether) {
  TableSpec spec = policy_spec();
  spec.row_limit = 60;
  spec.policy.expire_after = 30;
  spec.policy.when_full = WhenFull::evict_lfu;
  spec.policy.min_count = 2;
  const PlainPolicyTable plain = compare_policy(GetParam(), spec, 200, 20);
  EXPECT_GT(plain.counts.evicted, 20);
  EXPECT_GT(plain.counts.not_admitted, 20);
  spec.policy.min_count = 1;
  spec.policy.when_full = WhenFull::ignore;
  spec.policy.expire_after = 10;
  const PlainPolicyTable reopened = compare_policy(GetParam(), spec, 200, 20);
  EXPECT_GT(reopened.counts.expired, 100) << "a table that rows expire from takes new keys again";
  EXPECT_GT(reopened.counts.ignored, 10);
}

TEST_P(TablePolicyTest, ChanceLetsInTheKeysOfTheReference) {
  for (const double p : {0.01, 0.3, 0.9}) {
    TableSpec spec = policy_spec(p < 0.5);
    spec.policy.admit_probability = p;
    EXPECT_GT(compare_policy(GetParam(), spec, 60, 40).counts.not_admitted, p < 0.5 ? 100 : 1);
  }
}

/// Returns the keys of a table after these batches. A batch is a pair: the index of its first sample among all samples,
/// and its bags.
std::string keys_after(Device device, const TableSpec& spec, const std::vector<std::pair<int64_t, Bags>>& batches,
                       int threads) {
  TableRig rig(device, spec, threads);
  for (const auto& [first_sample, bags] : batches) {
    rig.first_sample = first_sample;
    rig.step(bags, std::vector<float>(static_cast<size_t>(spec.samples * spec.slots * spec.dim), 0.0f));
  }
  return rig.bytes();
}

TEST_P(TablePolicyTest, ChanceDoesNotDependOnTheOrderOfBatchesOrOnThreads) {
  TableSpec spec = policy_spec();
  spec.policy.admit_probability = 0.2;
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  std::mt19937_64 random(5);
  std::vector<std::pair<int64_t, Bags>> batches;
  for (int64_t t = 0; t < 20; ++t)
    batches.emplace_back(t * spec.samples, random_bags(spec, spec.samples, 3, 500, random));
  const std::string keys = keys_after(GetParam(), spec, batches, 1);
  std::shuffle(batches.begin(), batches.end(), random);
  EXPECT_EQ(keys_after(GetParam(), spec, batches, 4), keys);
  EXPECT_EQ(keys_after(kCpu, spec, batches, 4), keys) << "devices differ";
  for (auto& [first_sample, bags] : batches) first_sample += 1000;
  EXPECT_NE(keys_after(GetParam(), spec, batches, 1), keys) << "other samples, other draws";
}

TEST(TablePolicyChance, TheShareOfKeysLetInIsTheProbability) {
  // Each key occurs once, in one slot. The number of admitted keys is binomial with n = 40000. The tolerance is four
  // standard deviations.
  for (const double p : {0.02, 0.25, 0.8}) {
    TableSpec spec = small_spec(1, 1, 1000, 1000);
    spec.policy.admit_probability = p;
    spec.optimizer.kind = ops::Optimizer::Kind::sgd;
    TableRig rig(kCpu, spec);
    constexpr int64_t kSteps = 40;
    int64_t key = 0;
    for (int64_t t = 0; t < kSteps; ++t) {
      Bags bags = empty_bags(spec, spec.samples);
      for (auto& bag : bags[0]) bag = {key++};
      rig.first_sample = t * spec.samples;
      rig.step(bags, std::vector<float>(1000, 0.0f));
    }
    const auto n = static_cast<double>(key);
    EXPECT_NEAR(static_cast<double>(rig.table->rows()), n * p, 4 * std::sqrt(n * p * (1 - p))) << p;
  }
}

/// Trains some steps, and returns the table's bytes and counts.
std::string train_with_policy(TableRig& rig, int steps) {
  std::mt19937_64 random(23);
  for (int t = 0; t < steps; ++t)
    rig.step(drifting_bags(rig.spec(), t, 30, random),
             random_floats(rig.spec().samples * rig.spec().columns() * rig.spec().dim, random));
  std::string out = rig.bytes();
  for (const auto& [name, value] : rig.table->counts()) out += cat(name, value);
  return out;
}

TEST_P(TablePolicyTest, TwoRunsAreEqualBitByBitWhateverTheThreadsAndRecordedOrNot) {
  for (const WhenFull when : {WhenFull::evict_lru, WhenFull::evict_lfu, WhenFull::ignore})
    for (const int64_t min_count : {1, 2}) {
      TableSpec spec = policy_spec();
      spec.row_limit = 70;
      spec.policy = {.when_full = when, .expire_after = 20, .min_count = min_count};
      TableRig one(GetParam(), spec), other(GetParam(), spec, 4), called(GetParam(), spec, 1, 2, false),
          longer_ring(GetParam(), spec, 1, 3);
      const std::string bytes = train_with_policy(one, 60);
      EXPECT_EQ(train_with_policy(other, 60), bytes);
      EXPECT_EQ(train_with_policy(called, 60), bytes);
      EXPECT_EQ(train_with_policy(longer_ring, 60), bytes);
    }
}

TEST_P(TablePolicyTest, PreparingAheadLetsInTheSameKeys) {
  TableSpec spec = policy_spec();
  spec.policy.min_count = 2;
  expect_preparing_ahead_changes_nothing(GetParam(), spec, 12, 60);
}

TEST_P(TablePolicyTest, ASkippedStepCountsAsSeen) {
  TableSpec spec = small_spec(1, 1, 2, 2);
  spec.row_limit = 2;
  spec.policy.when_full = WhenFull::evict_lru;
  TableRig rig(GetParam(), spec);
  rig.step({{{1}, {2}}}, {0, 0});
  rig.skip = 1;
  rig.step({{{1}, {1}}}, {0, 0});
  rig.skip = 0;
  rig.step({{{3}, {3}}}, {0, 0});
  std::vector<int64_t> left;
  rig.table->export_rows(false, [&](const RowBlock& block) { left.assign(block.keys.begin(), block.keys.end()); });
  EXPECT_EQ(left, (std::vector<int64_t>{1, 3}));
}

TEST_P(TablePolicyTest, LoadingMoreRowsThanTheLimitIsAnErrorAndAsManyIsNone) {
  for (const WhenFull when : {WhenFull::evict_lru, WhenFull::ignore}) {
    TableSpec spec = small_spec(1, 1, 4, 4);
    spec.row_limit = 6;
    spec.policy.when_full = when;
    const std::vector<int64_t> keys = {1, 2, 3, 4, 5, 6, 7};
    const std::vector<float> vectors(keys.size(), 0.5f);
    const auto load = [&](size_t count) {
      TableRig rig(GetParam(), spec);
      rig.table->import_rows({std::span(keys).first(count), {}, std::span(vectors).first(count), {}, {}});
      return rig.table->rows();
    };
    EXPECT_EQ(load(6), 6);
    EXPECT_NE(message_of(Kind::data, [&] { load(7); })
                  .find("the 6 rows that \"max_vocabulary_size_per_gpu\" allows (7 or more)"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace hctr::test
