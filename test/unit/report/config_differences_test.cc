#include "report/config_differences.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

Json config(const std::string& text) { return Json::parse(text, "config"); }

TEST(ConfigDifferences, NamesPlacesByTopsWhateverTheOrderOfLayers) {
  const Json a = config(R"({"solver": {"batchsize": 64, "gpu": [0]}, "layers": [{"type": "Data", "source": "x"},
                            {"top": "fc1", "fc_param": {"num_output": 8}}, {"top": ["loss"], "type": "L"}]})");
  const Json b = config(R"({"solver": {"batchsize": 128, "gpu": [0]}, "layers": [{"type": "Data", "source": "x"},
                            {"top": "bn"}, {"top": "fc1", "fc_param": {"num_output": 16}},
                            {"top": ["loss"], "type": "L"}]})");
  const auto found = config_differences({a, b});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].place, "/solver/batchsize");
  EXPECT_EQ(found[0].values, (std::vector<std::string>{"64", "128"}));
  EXPECT_EQ(found[1].place, "/layers/fc1/fc_param/num_output");
  EXPECT_EQ(found[2].place, "/layers/bn/top");
  EXPECT_EQ(found[2].values, (std::vector<std::string>{"", "\"bn\""}));
}

TEST(ConfigDifferences, OfThreeRunsOneMayDifferAndOneBeUnknown) {
  const Json a = config(R"({"seed": 1})"), b = config(R"({"seed": 2})");
  const auto found = config_differences({a, Json(), a, b});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].values, (std::vector<std::string>{"1", "", "1", "2"}));
  EXPECT_TRUE(config_differences({a, Json(), a}).empty());
}

}  // namespace
}  // namespace hctr::test
