#include "metrics/grouped_auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "unit/metrics/scored_samples.h"

namespace hctr::test {
namespace {

double plain_grouped_area(const ScoredSamples& s) {
  std::map<int64_t, std::pair<std::vector<float>, std::vector<float>>> groups;
  for (size_t i = 0; i < s.scores.size(); ++i) {
    groups[*s.groups[i]].first.push_back(s.scores[i]);
    groups[*s.groups[i]].second.push_back(s.labels[i]);
  }
  double total = 0, weight = 0;
  for (const auto& [group, members] : groups) {
    const double area = plain_area(members.first, members.second);
    if (std::isnan(area)) continue;
    total += area * static_cast<double>(members.first.size());
    weight += static_cast<double>(members.first.size());
  }
  return total / weight;
}

double grouped_area(const ScoredSamples& s, size_t most = GroupedAuc::kMost) {
  GroupedAuc groups(most);
  for (size_t begin = 0; begin < s.scores.size(); begin += 77) {
    const size_t count = std::min<size_t>(77, s.scores.size() - begin);
    groups.add({s.scores.data() + begin, count}, {s.labels.data() + begin, count}, {s.groups.data() + begin, count});
  }
  return groups.value();
}

TEST(GroupedAuc, SampledPartsMergeToASampledWhole) {
  constexpr size_t kMost = 20000;
  const ScoredSamples s = scored_samples(100000, 3, -1, 0, 30000);
  GroupedAuc merged(kMost);
  for (const auto& [begin, end] : {std::pair<size_t, size_t>(0, 5000), {5000, 90000}, {90000, 100000}}) {
    GroupedAuc one(kMost);
    one.add({s.scores.data() + begin, end - begin}, {s.labels.data() + begin, end - begin},
            {s.groups.data() + begin, end - begin});
    merged.merge(one.state());
  }
  EXPECT_LT((merged.state().size()), kMost * 17);
  EXPECT_NEAR(merged.value(), plain_grouped_area(s), 0.03);
}

TEST(GroupedAuc, IsTheMeanOfThoseOfGroups) {
  for (const uint64_t groups : {1, 7, 300}) {
    const ScoredSamples s = scored_samples(3000, 2, -1, 50, groups);
    EXPECT_NEAR(grouped_area(s), plain_grouped_area(s), 1e-12) << groups;
  }
}

TEST(GroupedAuc, LeavesOutGroupsOfOneKindAndSamplesOfNone) {
  using Groups = std::vector<std::optional<int64_t>>;
  const std::vector<float> scores = {0.9f, 0.1f, 0.2f, 0.3f}, labels = {1, 0, 1, 1};
  GroupedAuc two, four, none;
  two.add(scores, labels, Groups{5, 5, 6, 6});
  four.add(scores, labels, Groups{1, 2, 3, 4});
  none.add(scores, labels, Groups{{}, {}, {}, {}});
  EXPECT_EQ(two.value(), 1);
  EXPECT_TRUE(std::isnan(four.value()));
  EXPECT_TRUE(std::isnan(none.value()));
}

TEST(GroupedAuc, OfMoreSamplesThanItKeepsIsThatOfAShareOfThem) {
  const ScoredSamples many = scored_samples(400000, 3, -1, 0, 40000), few = scored_samples(400000, 4, -1, 0, 3);
  // Keeps about 10,000 groups.
  EXPECT_NEAR(grouped_area(many, 100000), plain_grouped_area(many), 0.01);
  // Keeps at least 50,000 of the 400,000 samples.
  EXPECT_NEAR(grouped_area(few, 100000), plain_grouped_area(few), 0.01);
}

TEST(GroupedAuc, IsNotDefinedWithScoresThatAreNoNumbers) {
  GroupedAuc broken;
  broken.add(std::vector<float>{NAN, 0.5f}, std::vector<float>{1, 0}, std::vector<std::optional<int64_t>>{1, 1});
  EXPECT_TRUE(std::isnan(broken.value()));
}

}  // namespace
}  // namespace hctr::test
