// A loss counts as trained once it has had a sample with a label and a positive weight.
#include "score/counted_samples.h"

#include <gtest/gtest.h>

#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

/// Batches of 8 samples with three values: two labels of a MultiCrossEntropyLoss, and a weight.
class Counted : public testing::Test {
 protected:
  Counted() {
    Problems problems;
    graph_ = wire(config_, 8, problems);
    problems.throw_if_any("test.json");
    counted_.emplace(config_, graph_);
  }
  /// Adds a batch in which one sample has the values `one` and all others the values `all`.
  void add(const std::vector<float>& all, const std::vector<float>& one, int64_t valid = 8) {
    const BatchLayout layout({.samples = 8, .label_dim = 3, .dense_dim = 3, .tables = {}});
    std::vector<std::byte> memory(layout.bytes);
    const BatchView batch(layout, memory.data());
    batch.state->valid_samples = static_cast<int32_t>(valid);
    for (int64_t r = 0; r < 8; ++r) std::copy_n((r == 5 ? one : all).begin(), 3, batch.label + r * 3);
    counted_->add(batch);
  }
  const CountedSamples::Loss& loss() const { return counted_->losses().front(); }
  std::string why() const { return why_none_counts(loss(), "w"); }

  Config config_ = config_of(R"(
      {"type": "Slice", "bottom": "label", "top": ["y", "w"], "ranges": [[0, 2], [2, 3]]},
      {"type": "InnerProduct", "bottom": "dense", "top": "b", "fc_param": {"num_output": 2}},
      {"type": "MultiCrossEntropyLoss", "bottom": ["b", "y", "w"], "top": "m", "target_weight": [1, 1]})",
                             3);
  Graph graph_;
  std::optional<CountedSamples> counted_;
};

TEST_F(Counted, NeedsALabelAndAWeightInOneSample) {
  add({-1, -1, 0}, {-1, -1, 0});
  EXPECT_EQ(why(), "no sample has a label, and every sample has weight 0 (\"sample_weight\" is column 'w')");
  add({-1, -1, 0}, {-1, -1, 2});
  EXPECT_EQ(why(), "every label is missing");
  add({-1, 0, 0}, {-1, 1, 0});
  EXPECT_EQ(why(), "every sample with a label has weight 0 (\"sample_weight\" is column 'w')");
  EXPECT_FALSE(loss().counted);
  add({-1, -1, 0}, {-1, 0, 0.5f}, 5);  // row 5 has the values `one`; it is padding, because only 5 samples are valid
  EXPECT_FALSE(loss().counted);
  add({-1, -1, 0}, {-1, 0, 0.5f});
  EXPECT_TRUE(loss().counted);
  add({-1, -1, 0}, {-1, -1, 0});
  EXPECT_TRUE(loss().counted);
}

TEST_F(Counted, OnlyWeightsOfZeroAreNamed) {
  add({0, 1, 0}, {1, 1, 0});
  EXPECT_EQ(why_none_counts(loss(), ""), "every weight is 0");
}

}  // namespace
}  // namespace hctr::test
