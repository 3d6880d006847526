#include <gtest/gtest.h>

#include <cstring>

#include "core/base/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

std::string fc(const std::string& top, int width = 1) {
  return R"({"type": "InnerProduct", "bottom": "dense", "top": ")" + top + R"(", "fc_param": {"num_output": )" +
         std::to_string(width) + "}}, ";
}
std::string bce(const std::string& bottom, const std::string& top, const std::string& more = "") {
  return R"({"type": "BinaryCrossEntropyLoss", "bottom": [")" + bottom + R"(", "label"], "top": ")" + top + "\"" +
         more + "}";
}

float value(const Tensor& tensor, const TinyModel& tiny) { return to_host<float>(tiny.runtime_stream(), tensor)[0]; }

TEST(Losses, OneLossIsItsOwnSum) {
  TinyModel tiny(config_of(fc("a") + bce("a", "loss")));
  tiny.evaluate();
  EXPECT_EQ(tiny.model.tasks(), std::vector<std::string>{"loss"});
  EXPECT_EQ(tiny.model.losses(Phase::evaluate)[0].bytes(), tiny.model.loss(Phase::evaluate).bytes());
}

TEST(Losses, SeveralAddUpByTheirWeights) {
  TinyModel tiny(
      config_of(fc("a") + fc("b", 2) + bce("a", "click", R"(, "loss_weight": 0.25)") +
                R"(, {"type": "CrossEntropyLoss", "bottom": ["b", "label"], "top": "buy", "loss_weight": 2})"));
  EXPECT_EQ(tiny.model.tasks(), (std::vector<std::string>{"click", "buy"}));
  for (const Phase phase : {Phase::train, Phase::evaluate}) {
    phase == Phase::train ? tiny.train() : tiny.evaluate();
    const auto losses = tiny.model.losses(phase);
    EXPECT_FLOAT_EQ(tiny.loss(phase), 0.25f * value(losses[0], tiny) + 2 * value(losses[1], tiny));
    EXPECT_EQ(tiny.model.predictions(phase).size(), 2u);
    EXPECT_EQ(tiny.model.prediction(phase).bytes(), tiny.model.predictions(phase)[0].bytes());
  }
}

TEST(Losses, AWeightScalesTheStep) {
  // Two losses with weight 0.5 change the weights like one loss with weight 1.
  TinyModel whole(config_of(fc("a") + bce("a", "loss"))),
      halves(config_of(fc("a") + bce("a", "one", R"(, "weight": 0.5)") + ", " + bce("a", "two", R"(, "weight": 0.5)")));
  for (int i = 0; i < 3; ++i) {
    whole.train();
    halves.train();
    EXPECT_FLOAT_EQ(whole.loss(Phase::train), halves.loss(Phase::train));
  }
  whole.evaluate();
  halves.evaluate();
  for (size_t b = 0; b < 8; ++b) EXPECT_NEAR(whole.prediction()[b], halves.prediction()[b], 1e-6);
}

TEST(Losses, EachPenaltyAppliesOnceAndUnweighted) {
  const std::string l2 = R"(, "regularizer": "L2", "lambda": 0.3)";
  TinyModel plain(config_of(fc("a") + bce("a", "one") + ", " + bce("a", "two", R"(, "loss_weight": 3)"))),
      one(config_of(fc("a") + bce("a", "one") + ", " + bce("a", "two", R"(, "loss_weight": 3)" + l2))),
      both(config_of(fc("a") + bce("a", "one", l2) + ", " + bce("a", "two", R"(, "loss_weight": 3)" + l2)));
  for (TinyModel* tiny : {&plain, &one, &both}) tiny->evaluate();
  const float penalty = one.loss(Phase::evaluate) - plain.loss(Phase::evaluate);
  EXPECT_GT(penalty, 0);
  EXPECT_NEAR(both.loss(Phase::evaluate) - plain.loss(Phase::evaluate), 2 * penalty, 1e-5);
  EXPECT_EQ(value(both.model.losses(Phase::evaluate)[0], both), value(plain.model.losses(Phase::evaluate)[0], plain));
}

TEST(Losses, PredictionsOfManyLabelsLieInOnePiece) {
  TinyModel tiny(
      config_of(
          fc("a", 5) +
              R"({"type": "MultiCrossEntropyLoss", "bottom": ["a", "label"], "top": "loss", "target_weight": [1, 1, 1, 1, 1]})",
          5),
      5);
  EXPECT_TRUE(tiny.model.prediction(Phase::evaluate).dense());
  tiny.train();
  const float first = tiny.loss(Phase::train);
  for (int i = 0; i < 5; ++i) tiny.train();
  EXPECT_LT(tiny.loss(Phase::train), first);
}

TEST(Losses, EachNeedsSomethingThatLearns) {
  EXPECT_EQ(wiring_errors(fc("a", 3).substr(0, fc("a", 3).size() - 2)),
            "/layers: the config has no loss layer; add a BinaryCrossEntropyLoss that reads the last layer and the "
            "label\n");
  EXPECT_EQ(wiring_errors(fc("a") + bce("a", "one") + ", " + bce("label", "two")),
            "/layers/3/bottom/0: no trainable layer feeds this loss\n");
}

std::string wiring_warnings(const std::string& layers) {
  Problems problems;
  const Config config = config_of(layers, problems);
  wire(config, 8, problems);
  EXPECT_FALSE(problems.any_error());
  std::string text;
  for (const Problems::Entry& entry : problems.warnings()) text += entry.pointer + ": " + entry.message + "\n";
  return text;
}

TEST(Losses, ATensorThatNoLayerReadsHasGradientZero) {
  const std::string slice = R"({"type": "Slice", "bottom": "ab", "top": ["a", "b"], "ranges": [[0, 1], [1, 3]]}, )";
  const std::string unread = fc("extra", 2) + R"({"type": "ReLU", "bottom": "extra", "top": "active"}, )";
  const std::string plain = fc("ab", 3) + slice + fc("b2") + bce("a", "loss");
  EXPECT_EQ(wiring_warnings(plain),
            "/layers/2/top: no layer reads \"b\": its gradient is zero\n"
            "/layers/3/top: no layer reads \"b2\": its gradient is zero\n");
  EXPECT_EQ(wiring_warnings(unread + fc("a") + bce("a", "loss")),
            "/layers/2/top: no layer reads \"active\": its gradient is zero\n");
  // Weights that feed only an unread tensor do not change. The other weights are trained as if the tensor did not
  // exist.
  const auto weights_after = [](const std::string& layers, int steps) {
    TinyModel tiny(config_of(layers));
    for (int i = 0; i < steps; ++i) tiny.train();
    const TemporaryFolder folder;
    tiny.model.save(folder.path().string() + "/", steps);
    const std::string bytes = read_text(folder / ("_dense_" + std::to_string(steps) + ".model"), "model");
    std::vector<float> weights(bytes.size() / sizeof(float));
    std::memcpy(weights.data(), bytes.data(), bytes.size());
    return weights;
  };
  const auto before = weights_after(unread + fc("a") + bce("a", "loss"), 0),
             after = weights_after(unread + fc("a") + bce("a", "loss"), 3),
             alone = weights_after(fc("a") + bce("a", "loss"), 3);
  ASSERT_EQ(after.size(), 2u * 3 + 2 + 3 + 1);
  EXPECT_TRUE(std::equal(after.begin(), after.begin() + 8, before.begin()));
  EXPECT_EQ(std::vector<float>(after.begin() + 8, after.end()), alone);
  // The weights and biases of columns 1 and 2 of "ab" do not change, because these columns feed only the unread tensor.
  const auto first = weights_after(plain, 0), last = weights_after(plain, 3);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(first[i] != last[i], i % 3 == 0) << i;
}

}  // namespace
}  // namespace hctr::test
