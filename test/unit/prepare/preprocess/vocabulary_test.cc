#include "prepare/preprocess/vocabulary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/random.h"
#include "formats/data/key_space.h"
#include "prepare/preprocess/dense_statistics.h"

namespace hctr::data_test {
namespace {

TEST(CodeCounts, CountAsAMapDoesHoweverTheyAreSharedOut) {
  std::map<uint64_t, uint64_t> expected;
  CodeCounts parts[3];
  std::vector<uint64_t> codes;
  for (uint64_t i = 0; i < 50000; ++i) {
    codes.push_back(mix64(i) % (i % 2 ? 100 : 20000));
    ++expected[codes.back()];
  }
  parts[0].add({codes.data(), 30000});
  parts[1].add({codes.data() + 30000, 5});
  parts[2].add({codes.data() + 30005, 19995});
  CodeCounts all;
  for (CodeCounts& part : parts) all.merge(part);
  EXPECT_EQ(all.distinct(), static_cast<int64_t>(expected.size()));
  for (const auto& [code, count] : expected) EXPECT_EQ(all.of(code), count);
  EXPECT_EQ(all.of(20001), 0u);
}

TEST(Vocabulary, IdsFollowCountsAndThenCodes) {
  CodeCounts counts;
  for (const uint64_t code : {9, 9, 9, 5, 5, 7, 7, 7, 4, 8, 8}) counts.add(code);
  counts.add(kMissing, 6);
  Vocabulary words(counts, 2);
  EXPECT_EQ(words.size(), 6);
  EXPECT_EQ(words.distinct(), 5);
  EXPECT_EQ(words.missing(), 6);
  EXPECT_EQ(words.rare(), 1);
  std::vector<uint64_t> ids = {7, 9, 5, 8, 4, 123, kMissing};
  words.to_ids(ids);
  EXPECT_EQ(ids, (std::vector<uint64_t>{2, 3, 4, 5, 1, 1, 0}));
}

TEST(DenseStatistics, MergedPartsAreTheWhole) {
  std::vector<double> values;
  for (uint64_t i = 0; i < 1000; ++i)
    values.push_back(i % 7 == 0 ? std::nan("") : static_cast<double>(mix64(i) % 1000) - 100);
  DenseColumn whole, parts;
  whole.add(values, true);
  for (size_t i = 0; i < 1000; i += 100) {
    DenseColumn part;
    part.add({values.data() + i, 100}, true);
    parts.merge(part);
  }
  EXPECT_EQ(whole.missing, 143);
  EXPECT_EQ(parts.missing, 143);
  EXPECT_EQ(whole.raw.least, parts.raw.least);
  EXPECT_NEAR(whole.raw.moments.mean(), parts.raw.moments.mean(), 1e-9);
  EXPECT_NEAR(whole.raw.moments.deviation(), parts.raw.moments.deviation(), 1e-9);
  EXPECT_NEAR(whole.scaled.moments.deviation(), parts.scaled.moments.deviation(), 1e-12);
}

TEST(DenseScaling, AConstantColumnBecomesZero) {
  DenseColumn column;
  column.add(std::vector<double>{4, 4, 4}, false);
  for (const Normalize how : {Normalize::minmax, Normalize::standard}) {
    const DenseScaling scaled({.fill = 4, .normalize = how}, column);
    EXPECT_EQ(scaled(4), 0.0f);
  }
}

}  // namespace
}  // namespace hctr::data_test
