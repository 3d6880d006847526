// The decisions of a table about its rows. They depend only on counts, so these tests need neither rows nor a device.
#include "engine/policy/store_policy.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"

namespace hctr::test {
namespace {

constexpr int64_t kRowLimit = 160, kKeysOfBatch = 20;

TableSpec limited_spec(WhenFull when_full, int64_t limit = kRowLimit) {
  TableSpec spec;
  spec.name = "limited";
  spec.row_limit = limit;
  spec.limit_setting = "most";
  spec.policy.when_full = when_full;
  return spec;
}

StorePolicy policy_of(const TableSpec& spec, bool on_disk = false) {
  return {spec, kKeysOfBatch, on_disk, "table 'limited'", setting_words({})};
}

template <class Body>
std::string refusal_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::data);
    return error.what();
  }
  return "";
}

TEST(StorePolicy, WithoutALimitMemoryIsTheLimit) {
  StorePolicy policy = policy_of(limited_spec(WhenFull::error, 0));
  EXPECT_EQ(policy.most_rows(), kMostRows);
  policy.expect(int64_t{1} << 40);
  EXPECT_FALSE(policy.near_limit());
  EXPECT_FALSE(policy.exceeded(int64_t{1} << 40));
  EXPECT_EQ(refusal_of([&] { policy.check(int64_t{1} << 40); }), "");
}

TEST(StorePolicy, DirectKeysHaveNoLimit) {
  TableSpec spec = limited_spec(WhenFull::evict_lru);
  spec.direct.spans.push_back({.first = 0, .count = 1000, .base = 0, .step = 1});
  EXPECT_EQ(policy_of(spec).limit(), 0);
  EXPECT_FALSE(policy_of(spec).beyond(1000));
}

TEST(StorePolicy, RowsAreCountedOnlyWhereABatchMayExceedTheLimit) {
  StorePolicy policy = policy_of(limited_spec(WhenFull::evict_lru));
  policy.expect(kRowLimit);
  EXPECT_FALSE(policy.near_limit());
  EXPECT_FALSE(policy.exceeded(kRowLimit + 1)) << "a batch that cannot exceed it is not asked";
  policy.expect(kRowLimit + 1);
  EXPECT_TRUE(policy.near_limit());
  EXPECT_FALSE(policy.exceeded(kRowLimit));
  EXPECT_TRUE(policy.exceeded(kRowLimit + 1));
}

TEST(StorePolicy, AnErrorNamesTheLimitItsSettingAndTheRows) {
  const StorePolicy policy = policy_of(limited_spec(WhenFull::error));
  EXPECT_EQ(refusal_of([&] { policy.check(kRowLimit); }), "");
  const std::string message = refusal_of([&] { policy.check(kRowLimit + 3); });
  for (const char* const part : {"table 'limited'", "160 rows", "\"most\"", "(163 or more)"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(StorePolicy, ABatchOfMoreKeysThanTheLimitIsRefused) {
  const StorePolicy policy = policy_of(limited_spec(WhenFull::evict_lfu));
  EXPECT_EQ(refusal_of([&] { policy.check_batch(kRowLimit); }), "");
  EXPECT_NE(refusal_of([&] { policy.check_batch(kRowLimit + 1); }).find("161 different keys"), std::string::npos);
}

TEST(StorePolicy, ABatchIsInsertedBeforeRowsLeaveForIt) {
  EXPECT_EQ(policy_of(limited_spec(WhenFull::error)).most_rows(), kRowLimit);
  EXPECT_EQ(policy_of(limited_spec(WhenFull::evict_lru)).most_rows(), kRowLimit + kKeysOfBatch);
  EXPECT_EQ(policy_of(limited_spec(WhenFull::ignore)).most_rows(), kRowLimit + kKeysOfBatch + 1) << "the shared row";
  EXPECT_EQ(policy_of(limited_spec(WhenFull::error), true).most_rows(), kRowLimit + kKeysOfBatch)
      << "rows in memory and on the disk are counted behind a batch";
  // After each earlier batch, eviction has reduced the table to the limit.
  EXPECT_EQ(policy_of(limited_spec(WhenFull::evict_lru)).most_after(1000, kKeysOfBatch), kRowLimit + kKeysOfBatch);
  EXPECT_EQ(policy_of(limited_spec(WhenFull::error)).most_after(1000, kKeysOfBatch), 1000);
}

TEST(StorePolicy, AnEvictionLeavesFifteenSixteenthsOrTheBatch) {
  const StorePolicy policy = policy_of(limited_spec(WhenFull::evict_lru));
  EXPECT_EQ(policy.rows_to_evict({.in_memory = 170}, 0, kKeysOfBatch), 20);
  EXPECT_EQ(policy.rows_to_evict({.in_memory = 70, .on_disk = 100}, 0, kKeysOfBatch), 20) << "in all tiers together";
  EXPECT_EQ(policy.rows_to_evict({.in_memory = 170}, 5, kKeysOfBatch), 15) << "admitted candidates leave anyway";
  EXPECT_EQ(policy.rows_to_evict({.in_memory = 170}, 0, 155), 15) << "the rows of the batch stay";
  EXPECT_EQ(policy.rows_to_evict({.in_memory = 100}, 0, kKeysOfBatch), 0);
}

TEST(StorePolicy, AFullTableRefusesNewKeysButNotTheSharedRow) {
  StorePolicy policy = policy_of(limited_spec(WhenFull::ignore));
  policy.expect(kRowLimit + 1 + kKeysOfBatch);
  EXPECT_FALSE(policy.exceeded(kRowLimit + 1));
  EXPECT_EQ(policy.rows_to_refuse({.in_memory = kRowLimit + 1 + 7}), 7);
  EXPECT_EQ(policy.rows_to_refuse({.in_memory = 100, .on_disk = kRowLimit + 1 + 7 - 100}), 7);
  EXPECT_FALSE(policy.reopens(kRowLimit));
  EXPECT_TRUE(policy.reopens(kRowLimit - 1));
}

TEST(StorePolicy, RowsExpireAtEachSixteenthOfTheirTime) {
  TableSpec spec = limited_spec(WhenFull::error, 0);
  spec.policy.expire_after = 32;
  const StorePolicy policy = policy_of(spec);
  EXPECT_EQ(policy.expired_before(32), 0) << "no row is old enough";
  EXPECT_EQ(policy.expired_before(33), 0) << "once in two steps";
  EXPECT_EQ(policy.expired_before(34), 2);
}

}  // namespace
}  // namespace hctr::test
