// The values of "compatibility" that change a step, on a small model.
#include "config/compatibility.h"

#include <gtest/gtest.h>

#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

const std::string kLoss =
    R"({"type": "BinaryCrossEntropyLoss", "bottom": ["z", "label"], "top": "loss", "regularizer": "L2", "lambda": 0.3})";
const std::string kLinear =
    R"({"type": "InnerProduct", "bottom": "dense", "top": "z", "fc_param": {"num_output": 1}}, )" + kLoss;

TEST(Compatibility, ReadsItsWords) {
  Compatibility all;
  std::string text;
  for (const CompatibilityWord& each : compatibility_words()) text += (text.empty() ? "[\"" : ",\"") + each.word + "\"";
  EXPECT_TRUE(read_value(Json::parse(text + "]", "words"), {}, all).empty());
  for (const CompatibilityWord& each : compatibility_words()) EXPECT_TRUE(all.*each.flag) << each.word;
  EXPECT_EQ(to_json(all).text(), text + "]");
  EXPECT_EQ(to_json(Compatibility()).text(), "[]");
}

TEST(Compatibility, NamesAWordThatIsNone) {
  Problems problems;
  solver_schema().parse(
      Json::parse(R"({"batchsize": 1, "compatibility": ["penalty_per_gpu", "penalty_per_gpus"]})", "solver"), "/solver",
      problems);
  ASSERT_EQ(problems.errors().size(), 1u);
  EXPECT_EQ(problems.errors()[0].pointer, "/solver/compatibility/1");
  EXPECT_NE(problems.errors()[0].message.find("did you mean \"penalty_per_gpu\"?"), std::string::npos)
      << problems.errors()[0].message;
}

TEST(Compatibility, PenaltyPerGpuGrowsWithTheGpus) {
  const std::string word = R"(, "compatibility": ["penalty_per_gpu"])";
  const auto trained = [](const std::string& layers, const std::string& solver) {
    auto tiny = std::make_unique<TinyModel>(config_of(layers, 1, solver));
    for (int i = 0; i < 3; ++i) tiny->train();
    tiny->evaluate();
    return tiny;
  };
  std::string nine_times = kLinear, thrice = kLinear;
  nine_times.replace(nine_times.find("0.3"), 3, "2.7");
  thrice.replace(thrice.find("0.3"), 3, "0.9");
  const auto three = trained(kLinear, R"(, "gpu": [0, 1, 2])" + word);
  EXPECT_EQ(three->prediction(), trained(nine_times, "")->prediction()) << "the gradient";
  EXPECT_EQ(trained(kLinear, word)->prediction(), trained(kLinear, "")->prediction()) << "of one GPU";
  EXPECT_EQ(trained(kLinear, R"(, "gpu": [0, 1, 2])")->prediction(), trained(kLinear, "")->prediction())
      << "without the word";
  TinyModel fresh(config_of(kLinear, 1, R"(, "gpu": [0, 1, 2])" + word)), expected(config_of(thrice));
  fresh.evaluate();
  expected.evaluate();
  EXPECT_FLOAT_EQ(fresh.loss(Phase::evaluate), expected.loss(Phase::evaluate)) << "the loss";
}

TEST(Compatibility, DotProductOfAZeroLearnsNothingInTheOldWay) {
  // The factor "a" is 0 at the start. Only with the product rule, it gets a gradient.
  const std::string layers =
      R"({"type": "InnerProduct", "bottom": "dense", "top": "a", "fc_param": {"num_output": 1, "weight_init": "Zero", "bias_init": "Zero"}},
         {"type": "InnerProduct", "bottom": "dense", "top": "b", "fc_param": {"num_output": 1}},
         {"type": "DotProduct", "bottom": ["a", "b"], "top": "z"},
         {"type": "BinaryCrossEntropyLoss", "bottom": ["z", "label"], "top": "loss"})";
  TinyModel ours(config_of(layers)), old(config_of(layers, 1, R"(, "compatibility": ["dot_product_gradient"])"));
  for (TinyModel* tiny : {&ours, &old}) {
    tiny->train();
    tiny->evaluate();
  }
  EXPECT_EQ(old.prediction(), std::vector<float>(8, 0.5f));
  EXPECT_NE(ours.prediction(), std::vector<float>(8, 0.5f));
}

}  // namespace
}  // namespace hctr::test
