// Joins the samples of several requests. The arrays of the samples may be views of the requests' memory.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "serve/request_samples.h"

namespace hctr::serve {
namespace {

constexpr int64_t kSlots = 3, kDense = 2;

/// Makes samples with one key in each slot. `given`: the arrays are views of a request's memory; otherwise the object
/// owns them.
SampleArrays samples(int64_t count, int first, bool given) {
  SampleArrays all{.samples = count, .dense_dim = kDense, .dense_name = "dense"};
  const auto dense = std::make_shared<std::vector<float>>(static_cast<size_t>(count * kDense));
  const auto keys = std::make_shared<std::vector<int64_t>>(static_cast<size_t>(count * kSlots));
  std::iota(dense->begin(), dense->end(), static_cast<float>(first));
  std::iota(keys->begin(), keys->end(), first);
  SampleArrays::Keys of{.name = "keys", .slots = kSlots, .offsets = {0}};
  if (given) {
    all.given_dense = {dense, dense->data()};
    of.given = {keys, keys->data()};
  } else {
    all.dense = *dense;
    of.keys = *keys;
    for (int64_t i = 1; i <= count * kSlots; ++i) of.offsets.push_back(i);
  }
  all.inputs.push_back(std::move(of));
  return all;
}

void expect_equal(const SampleArrays& one, const SampleArrays& other) {
  ASSERT_EQ(one.samples, other.samples);
  for (int64_t first = 0; first < one.samples; ++first) {
    const std::vector<InputView> a = one.views(first), b = other.views(first);
    ASSERT_EQ(a.size(), 2u);
    const int64_t left = one.samples - first;
    for (int64_t i = 0; i < left * kDense; ++i)
      ASSERT_EQ(static_cast<const float*>(a[0].data)[i], static_cast<const float*>(b[0].data)[i]);
    ASSERT_EQ(a[1].offsets, nullptr);
    ASSERT_EQ(b[1].offsets, nullptr);
    for (int64_t i = 0; i < left * kSlots; ++i)
      ASSERT_EQ(static_cast<const int64_t*>(a[1].data)[i], static_cast<const int64_t*>(b[1].data)[i]);
  }
}

TEST(AppendSamples, GivesTheSameSamplesWhereverTheyAre) {
  for (const bool first : {false, true})
    for (const bool second : {false, true}) {
      expect_equal(samples(4, 1, first), samples(4, 1, false));
      SampleArrays joined = samples(4, 1, first), plain = samples(4, 1, false);
      append_samples(joined, samples(5, 100, second));
      append_samples(joined, samples(1, 200, first));
      append_samples(plain, samples(5, 100, false));
      append_samples(plain, samples(1, 200, false));
      expect_equal(joined, plain);
      EXPECT_EQ(joined.inputs[0].offsets, plain.inputs[0].offsets);
      EXPECT_FALSE(joined.inputs[0].given) << "joined samples do not refer to a request";
    }
}

TEST(AppendSamples, JoinsOneKeyPerSlotWithBags) {
  SampleArrays joined = samples(2, 1, true);
  SampleArrays bags = samples(1, 0, false);
  bags.inputs[0].keys = {50, 51, 52, 53};
  bags.inputs[0].offsets = {0, 3, 3, 4};
  bags.inputs[0].one_each = false;
  append_samples(joined, bags);
  append_samples(joined, samples(1, 9, true));
  EXPECT_FALSE(joined.inputs[0].one_each);
  EXPECT_EQ(joined.inputs[0].keys, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 50, 51, 52, 53, 9, 10, 11}));
  EXPECT_EQ(joined.inputs[0].offsets, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 9, 9, 10, 11, 12, 13}));
}

}  // namespace
}  // namespace hctr::serve
