#include "metrics/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/message_of.h"
#include "unit/metrics/scored_samples.h"

namespace hctr::test {
namespace {

/// Adds the samples in batches of odd sizes.
void add_all(Ranking& ranking, const ScoredSamples& s) {
  for (size_t begin = 0, size = 1; begin < s.scores.size(); begin += size, size = size % 1000 + 37) {
    const size_t count = std::min(size, s.scores.size() - begin);
    ranking.add({s.scores.data() + begin, count}, {s.labels.data() + begin, count});
    size = count;
  }
}

TEST(Ranking, IsExactWithinItsMemory) {
  for (const int grid : {0, 50})
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const ScoredSamples s = scored_samples(20000, seed, -2, grid);
      Ranking all_pending, often_folded(20000);
      add_all(all_pending, s);
      add_all(often_folded, s);
      EXPECT_NEAR(all_pending.area(), plain_area(s.scores, s.labels), 1e-12);
      EXPECT_NEAR(often_folded.area(), plain_area(s.scores, s.labels), 1e-12);
    }
}

TEST(Ranking, EqualScoresTakeNoRoom) {
  const ScoredSamples s = scored_samples(20000, 1, -2, 50);
  Ranking small(64);
  add_all(small, s);
  EXPECT_NEAR(small.area(), plain_area(s.scores, s.labels), 1e-12);
}

TEST(Ranking, BeyondItsMemoryStaysWithinItsBound) {
  for (const double centre : {-8.0, -3.0, 0.0, 9.0})
    for (const size_t most : {64, 1000, 16000}) {
      const ScoredSamples s = scored_samples(200000, 3, centre);
      Ranking small(most);
      add_all(small, s);
      EXPECT_NEAR(small.area(), plain_area(s.scores, s.labels), 2.0 / static_cast<double>(most))
          << centre << " " << most;
    }
}

TEST(Ranking, MergedRankingsBeyondTheirMemoryStayWithinTheBound) {
  const ScoredSamples s = scored_samples(200000, 6);
  constexpr size_t kMost = 2000;
  Ranking merged(kMost);
  for (size_t part = 0; part < 4; ++part) {
    Ranking one(kMost);
    one.add({s.scores.data() + part * 50000, 50000}, {s.labels.data() + part * 50000, 50000});
    merged.merge(one.state());
  }
  EXPECT_NEAR(merged.area(), plain_area(s.scores, s.labels), 4.0 / kMost)
      << "about what one ranking may lose, for each of four";
  EXPECT_EQ(merged.negatives() + merged.positives(), 200000);
}

TEST(Ranking, WithAMillionSamplesInAThirtiethOfTheirRoomIsWithinAMillionth) {
  const ScoredSamples s = scored_samples(1000000, 4);
  Ranking small(1 << 15);
  add_all(small, s);
  EXPECT_NEAR(small.area(), plain_area(s.scores, s.labels), 1e-6);
}

TEST(Ranking, KeepsNoMoreThanItsMemoryHolds) {
  const ScoredSamples s = scored_samples(1000, 7);
  Ranking tiny(4);
  add_all(tiny, s);
  EXPECT_GT(std::abs(tiny.area() - plain_area(s.scores, s.labels)), 1e-3)
      << "four steps cannot tell a thousand scores apart";
}

TEST(Ranking, RisingScoresAreNoTrap) {
  ScoredSamples s = scored_samples(100000, 5);
  std::vector<size_t> order(s.scores.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return s.scores[a] < s.scores[b]; });
  Ranking small(4000);
  for (const size_t i : order) small.add({&s.scores[i], 1}, {&s.labels[i], 1});
  EXPECT_NEAR(small.area(), plain_area(s.scores, s.labels), 2.0 / 4000);
}

TEST(Ranking, CountsItsSamples) {
  const ScoredSamples s = scored_samples(5000, 6);
  Ranking small(100);
  add_all(small, s);
  const auto positives = std::count(s.labels.begin(), s.labels.end(), 1.0f);
  EXPECT_EQ(small.positives(), positives);
  EXPECT_EQ(small.negatives(), 5000 - positives);
}

/// The gain with equal scores is the mean gain over all orders of the equal scores.
TEST(Ranking, GainIsTheMeanOverTheOrdersOfEqualScores) {
  const std::vector<float> scores = {0.5f, 0.9f, 0.5f, 0.1f, 0.5f}, labels = {1, 0, 0, 1, 1};
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  double mean = 0, best = 0;
  int orders = 0;
  do {
    double gain = 0;
    bool falls = true;
    for (size_t i = 0; i < 5; ++i) {
      gain += static_cast<double>(labels[order[i]]) / std::log2(static_cast<double>(i) + 2);
      falls = falls && (i == 0 || scores[order[i - 1]] >= scores[order[i]]);
    }
    best = std::max(best, gain);
    if (falls) mean += gain, ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 6);
  Ranking ranking;
  ranking.add(scores, labels);
  EXPECT_NEAR(ranking.normalized_gain(), mean / orders / best, 1e-12);
}

TEST(Ranking, IsNotDefinedWithoutBothKindsOrWithScoresThatAreNoNumbers) {
  const std::vector<float> scores = {0.1f, 0.2f}, ones = {1, 1}, zeros = {0, 0}, both = {0, 1}, nan = {NAN, 0.5f};
  Ranking none, all_positive, all_negative, broken;
  all_positive.add(scores, ones);
  all_negative.add(scores, zeros);
  broken.add(nan, both);
  for (Ranking* ranking : {&none, &all_positive, &all_negative, &broken}) EXPECT_TRUE(std::isnan(ranking->area()));
  for (Ranking* ranking : {&none, &all_negative, &broken}) EXPECT_TRUE(std::isnan(ranking->normalized_gain()));
  EXPECT_EQ(all_positive.normalized_gain(), 1);
}

TEST(Ranking, NeedsAScoreForEachLabel) {
  const std::string message =
      message_of(Kind::bug, [] { Ranking().add(std::vector<float>{1}, std::vector<float>{1, 0}); });
  EXPECT_EQ(message.rfind("1 scores for 2 labels", 0), 0u) << message;
}

}  // namespace
}  // namespace hctr::test
