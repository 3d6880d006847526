// The rule that divides time among overlapping parts.
#include "train/time_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace hctr::test {
namespace {

double total(const TimeShares& shares) {
  return std::accumulate(shares.share.begin(), shares.share.end(), shares.idle);
}

/// Random parts of three ranks, some outside of [0, 10). Times are multiples of 1/8, so sums are exact.
std::vector<PartInterval> random_intervals(unsigned seed, size_t parts) {
  std::minstd_rand random(seed);
  std::vector<PartInterval> all;
  for (int i = 0; i < 30; ++i) {
    const size_t part = random() % parts;
    const double begin = static_cast<double>(random() % 96) / 8 - 1, length = static_cast<double>(random() % 24) / 8;
    all.push_back({part, static_cast<int>(part % 3), begin, begin + length});
  }
  return all;
}

TEST(TimeShares, APartAloneHasItsOwnTimeAndTheRestIsIdle) {
  const std::vector<PartInterval> all = {{0, 0, 1, 3}, {1, 0, 4, 9}};
  const TimeShares shares = share_time(all, 2, 0, 10);
  EXPECT_DOUBLE_EQ(shares.share[0], 2);
  EXPECT_DOUBLE_EQ(shares.share[1], 5);
  EXPECT_DOUBLE_EQ(shares.idle, 3);
  EXPECT_TRUE(shares.together[0].empty());
}

TEST(TimeShares, WhatIsHiddenBehindALowerRankHasNoShare) {
  const std::vector<PartInterval> all = {{0, 0, 0, 4}, {1, 1, 1, 7}, {2, 2, 6, 9}};
  const TimeShares shares = share_time(all, 3, 0, 10);
  EXPECT_DOUBLE_EQ(shares.share[0], 4);
  EXPECT_DOUBLE_EQ(shares.share[1], 3);  // the time from 4 to 7
  EXPECT_DOUBLE_EQ(shares.share[2], 2);  // the time from 7 to 9
  EXPECT_DOUBLE_EQ(shares.idle, 1);
  EXPECT_DOUBLE_EQ(shares.together[0].at(1), 3);
  EXPECT_DOUBLE_EQ(shares.together[1].at(0), 3);
  EXPECT_DOUBLE_EQ(shares.together[1].at(2), 1);
  EXPECT_EQ(shares.together[0].count(2), 0u);
}

TEST(TimeShares, PartsOfOneRankShareInEqualPieces) {
  const std::vector<PartInterval> all = {{0, 1, 0, 6}, {1, 1, 3, 6}, {2, 1, 5, 8}};
  const TimeShares shares = share_time(all, 3, 0, 8);
  EXPECT_DOUBLE_EQ(shares.share[0], 3 + 2.0 / 2 + 1.0 / 3);
  EXPECT_DOUBLE_EQ(shares.share[1], 2.0 / 2 + 1.0 / 3);
  EXPECT_DOUBLE_EQ(shares.share[2], 1.0 / 3 + 2);
  EXPECT_DOUBLE_EQ(shares.idle, 0);
}

TEST(TimeShares, TwoIntervalsOfOnePartAreNotBesideEachOther) {
  const std::vector<PartInterval> all = {{0, 0, 0, 4}, {0, 0, 2, 5}};
  const TimeShares shares = share_time(all, 1, 0, 5);
  EXPECT_DOUBLE_EQ(shares.share[0], 5);
  EXPECT_TRUE(shares.together[0].empty());
}

TEST(TimeShares, WithIdleAreTheStretchWhateverRuns) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    const TimeShares shares = share_time(random_intervals(seed, 7), 7, 0, 10);
    EXPECT_NEAR(total(shares), 10, 1e-12) << "seed " << seed;
    EXPECT_GE(shares.idle, 0);
    for (size_t a = 0; a < 7; ++a) {
      EXPECT_GE(shares.share[a], 0);
      for (const auto& [b, both] : shares.together[a]) EXPECT_DOUBLE_EQ(both, shares.together[b].at(a));
    }
  }
}

TEST(TimeShares, DoNotDependOnTheOrderOfIntervals) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::vector<PartInterval> all = random_intervals(seed, 7);
    const TimeShares before = share_time(all, 7, 0, 10);
    std::shuffle(all.begin(), all.end(), std::minstd_rand(seed));
    const TimeShares after = share_time(all, 7, 0, 10);
    for (size_t p = 0; p < 7; ++p) EXPECT_NEAR(before.share[p], after.share[p], 1e-12) << "seed " << seed;
    EXPECT_NEAR(before.idle, after.idle, 1e-12);
  }
}

TEST(TimeShares, OfNothingAreIdle) {
  EXPECT_DOUBLE_EQ(share_time({}, 3, 2, 5).idle, 3);
  const std::vector<PartInterval> outside = {{0, 0, -2, 0}, {1, 0, 5, 6}, {2, 0, 3, 3}};
  EXPECT_DOUBLE_EQ(share_time(outside, 3, 0, 5).idle, 5);
}

}  // namespace
}  // namespace hctr::test
