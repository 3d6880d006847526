#include "net/graph/fp8_scales.h"

#include <gtest/gtest.h>

#include <cmath>

#include "net/fusion/fuse_layers.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

const char* const kFourStages = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc1", "fc_param": {"num_output": 48}},
  {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
  {"type": "MLP", "bottom": "relu1", "top": "mlp", "mlp_param": {"num_outputs": [32, 40, 64]}},
  {"type": "InnerProduct", "bottom": "mlp", "top": "fc2", "fc_param": {"num_output": 32}},
  {"type": "InnerProduct", "bottom": "fc2", "top": "fc3", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["fc3", "label"], "top": "loss"})";

Config fp8_config(const std::string& more = R"(, "mixed_precision": "fp8", "fp8_least_width": 32)") {
  return config_of(kFourStages, 1, more);
}

Graph fp8_graph(const Config& config) {
  Graph graph = wired_for_8(config);
  fuse_layers(graph, config.solver.mixed_precision);
  return graph;
}

TEST(Fp8Products, AreThoseOfWideLayersWhoseOutputsAreAMultipleOf16) {
  const Graph graph = fp8_graph(fp8_config());
  std::vector<size_t> products;
  for (const Node& node : graph.nodes) products.push_back(node.spec.fp8_products);
  // Too narrow for FP8: fc1 has three inputs, the second stage of the MLP has 40 outputs, and fc3 has one output.
  EXPECT_EQ(products, (std::vector<size_t>{0, 2, 1, 0, 0}));
  EXPECT_EQ(fp8_products(graph), 3u);
  EXPECT_EQ(fp8_products(fp8_graph(fp8_config(R"(, "mixed_precision": "fp8")"))), 0u) << "narrower than the default";
  EXPECT_EQ(fp8_products(fp8_graph(fp8_config(R"(, "mixed_precision": "bf16")"))), 0u);
}

TEST(Fp8Products, ShareTheirTransientMemory) {
  const Config config = fp8_config();
  const Graph graph = fp8_graph(config);
  const MemoryPlan plan(graph, Phase::train, Device{});
  const auto mlp = plan.transient(1), fc2 = plan.transient(2);
  ASSERT_EQ(mlp.size(), 3u);
  ASSERT_EQ(fc2.size(), 3u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(mlp[i].bytes(), fc2[i].bytes());
  EXPECT_NE(mlp[0].bytes(), mlp[1].bytes());
  EXPECT_TRUE(plan.transient(0).empty());
}

TEST(Fp8Training, StaysNearFp32AndRoundsMoreThanBf16) {
  TinyModel exact(fp8_config("")), half(fp8_config(R"(, "mixed_precision": "bf16")")), eighth(fp8_config());
  const float start = [&] {
    exact.evaluate();
    return exact.loss(Phase::evaluate);
  }();
  for (TinyModel* model : {&exact, &half, &eighth}) {
    model->state.learning_rate = 0.01f;
    for (int i = 0; i < 40; ++i) model->train();
  }
  ASSERT_LT(exact.loss(Phase::train), 0.8f * start) << "the test does not train";
  EXPECT_NEAR(eighth.loss(Phase::train) / exact.loss(Phase::train), 1, 0.06);
  EXPECT_NE(eighth.loss(Phase::train), half.loss(Phase::train)) << "nothing was FP8";
}

TEST(Fp8Training, EvaluatesInBf16) {
  TinyModel half(fp8_config(R"(, "mixed_precision": "bf16")")), eighth(fp8_config());
  half.evaluate();
  eighth.evaluate();
  EXPECT_EQ(half.prediction(), eighth.prediction()) << "of equal weights";
}

TEST(Fp8Training, ASkippedStepLeavesTheScalesAsTheyAre) {
  TinyModel model(fp8_config(R"(, "mixed_precision": "fp8", "fp8_least_width": 32, "on_nan": "skip")"));
  for (int i = 0; i < 3; ++i) model.train();
  const auto weights = [&] {
    std::vector<float> all;
    for (const NamedTensor& weight : model.model.dense_weights())
      for (const float value : to_host<float>(model.runtime_stream(), weight.value)) all.push_back(value);
    return all;
  };
  const std::vector<float> before = weights(), values = to_host<float>(model.runtime_stream(), model.dense);
  std::vector<float> spoiled = values;
  spoiled[4] = INFINITY;
  from_host(model.runtime_stream(), model.dense, spoiled);
  model.train();
  EXPECT_EQ(model.model.loss_scale()->skipped, 1);
  EXPECT_EQ(weights(), before);
  // A skipped step must not affect the next step.
  from_host(model.runtime_stream(), model.dense, values);
  model.train();
  const std::vector<float> with_skip = weights();
  TinyModel straight(fp8_config(R"(, "mixed_precision": "fp8", "fp8_least_width": 32, "on_nan": "skip")"));
  for (int i = 0; i < 4; ++i) straight.train();
  std::vector<float> expected;
  for (const NamedTensor& weight : straight.model.dense_weights())
    for (const float value : to_host<float>(straight.runtime_stream(), weight.value)) expected.push_back(value);
  EXPECT_EQ(with_skip, expected);
}

TEST(Fp8Training, TheWidthHasNoEffectWithoutFp8) {
  Problems problems;
  config_of(kFourStages, problems, 1, R"(, "mixed_precision": "bf16", "fp8_least_width": 32)");
  EXPECT_FALSE(problems.any_error());
  ASSERT_EQ(problems.notes().size(), 1u);
  EXPECT_EQ(problems.notes()[0].pointer, "/solver/fp8_least_width");
}

}  // namespace
}  // namespace hctr::test
