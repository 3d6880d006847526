#include "config/sections/precision.h"

#include <gtest/gtest.h>

#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

Precision read_precision(const std::string& json, std::string* expected = nullptr) {
  Precision precision;
  const std::string complaint = read_value(Json::parse(json, "test.json"), Range{}, precision);
  if (expected)
    *expected = complaint;
  else
    EXPECT_EQ(complaint, "") << json;
  return precision;
}

TEST(Precision, EverySpellingMeansOneSetting) {
  for (const char* off : {"false", "\"fp32\""}) EXPECT_FALSE(read_precision(off).mixed()) << off;
  for (const char* scale : {"128", "1024", "[1024]", "3.5"}) {
    const Precision precision = read_precision(scale);
    EXPECT_EQ(precision.activations, DType::f16) << scale;
    EXPECT_FALSE(precision.dynamic_scale);
  }
  EXPECT_EQ(read_precision("3.5").loss_scale, 3.5);
  for (const char* dynamic : {"true", "\"fp16\""}) EXPECT_TRUE(read_precision(dynamic).dynamic_scale) << dynamic;
  EXPECT_EQ(read_precision("\"bf16\"").activations, DType::bf16);
  EXPECT_FALSE(read_precision("\"bf16\"").may_overflow());
  EXPECT_FALSE(read_precision("\"bf16\"").fp8_products);
  EXPECT_EQ(read_precision("\"fp8\"").activations, DType::bf16);
  EXPECT_TRUE(read_precision("\"fp8\"").fp8_products);
}

TEST(Precision, NonsenseIsRefusedWithWhatWorks) {
  for (const char* json : {"0", "-8", "1e60", "\"half\"", "{}", "[]"}) {
    std::string expected;
    read_precision(json, &expected);
    EXPECT_NE(expected.find("a positive loss scale such as 1024"), std::string::npos) << json;
  }
}

TEST(Precision, TheEffectiveConfigSaysTheSame) {
  for (const char* json : {"\"fp32\"", "\"fp16\"", "\"bf16\"", "\"fp8\"", "512.0"}) {
    const Precision once = read_precision(json), again = read_precision(to_json(once).text());
    EXPECT_EQ(once.activations, again.activations) << json;
    EXPECT_EQ(once.loss_scale, again.loss_scale);
    EXPECT_EQ(once.dynamic_scale, again.dynamic_scale);
    EXPECT_EQ(once.fp8_products, again.fp8_products);
  }
}

const char* const kTwoStages = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc1", "fc_param": {"num_output": 16}},
  {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
  {"type": "Concat", "bottom": ["relu1", "dense"], "top": "both"},
  {"type": "InnerProduct", "bottom": "both", "top": "fc2", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"})";

Config with_precision(const std::string& json) {
  Config config = config_of(kTwoStages);
  config.solver.mixed_precision = read_precision(json);
  return config;
}

TEST(MixedPrecision, TrainsTheSameWeightsButForRounding) {
  TinyModel exact(with_precision("false"));
  for (int i = 0; i < 20; ++i) exact.train();
  for (const char* precision : {"true", "\"bf16\"", "256", "1"}) {
    TinyModel mixed(with_precision(precision));
    for (int i = 0; i < 20; ++i) mixed.train();
    const double tolerance = std::string(precision) == "\"bf16\"" ? 0.02 : 0.003;
    EXPECT_NEAR(mixed.loss(Phase::train) / exact.loss(Phase::train), 1, tolerance) << precision;
    EXPECT_NE(mixed.loss(Phase::train), exact.loss(Phase::train)) << precision << " rounded nothing";
  }
}

TEST(MixedPrecision, AScaleThatIsAPowerOfTwoChangesNothingWhileGradientsFit) {
  TinyModel plain(with_precision("1")), scaled(with_precision("64"));
  for (int i = 0; i < 5; ++i) {
    plain.train();
    scaled.train();
    // Loss scaling prevents f16 underflow of gradients. No gradient is subnormal here, so the losses are equal.
    EXPECT_EQ(plain.loss(Phase::train), scaled.loss(Phase::train)) << "step " << i;
  }
}

TEST(MixedPrecision, AnOverflowSkipsTheStepAndIsCounted) {
  TinyModel model(with_precision("1e9"));  // with this loss scale all gradients overflow f16
  const float before = model.loss(Phase::train);
  model.evaluate();
  const auto prediction = model.prediction();
  for (int i = 0; i < 3; ++i) model.train();
  model.evaluate();
  EXPECT_EQ(model.prediction(), prediction) << "a skipped step changed weights; loss before " << before;
  ASSERT_TRUE(model.model.loss_scale());
  EXPECT_EQ(model.model.loss_scale()->skipped, 3);
}

TEST(MixedPrecision, ADynamicScaleComesDownUntilStepsCountAgain) {
  Config config = with_precision("true");
  config.solver.mixed_precision.loss_scale = 1 << 24;
  TinyModel model(std::move(config));
  for (int i = 0; i < 30; ++i) model.train();
  const auto scale = model.model.loss_scale();
  EXPECT_GT(scale->skipped, 0);
  EXPECT_LT(scale->skipped, 20);
  EXPECT_EQ(scale->scale, static_cast<float>(1 << 24) / static_cast<float>(1 << scale->skipped));
  EXPECT_EQ(model.state.updates, 30 - scale->skipped);
}

TEST(MixedPrecision, OnlyFp16IsScaled) {
  EXPECT_FALSE(TinyModel(with_precision("\"bf16\"")).model.loss_scale());
  EXPECT_FALSE(TinyModel(with_precision("false")).model.loss_scale());
}

TEST(MixedPrecision, VectorsTravelInTheTypeOfActivationsUnlessTheConfigSaysOtherwise) {
  const auto type_of = [](const std::string& solver) {
    return config_of(R"({"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"})",
                     1, solver)
        .solver.exchange();
  };
  EXPECT_EQ(type_of(""), DType::f32);
  EXPECT_EQ(type_of(R"(, "mixed_precision": 1024)"), DType::f16);
  EXPECT_EQ(type_of(R"(, "mixed_precision": "bf16")"), DType::bf16);
  EXPECT_EQ(type_of(R"(, "mixed_precision": true, "exchange_precision": "fp32")"), DType::f32);
  EXPECT_EQ(type_of(R"(, "exchange_precision": "bf16")"), DType::bf16);
}

TEST(MixedPrecision, ALabelAmongActivationsIsNamed) {
  Problems problems;
  Config config = config_of(R"({"type": "Concat", "bottom": ["dense", "label"], "top": "both"},
    {"type": "InnerProduct", "bottom": "both", "top": "fc", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"})");
  config.solver.mixed_precision = read_precision("true");
  wire(config, 8, problems);
  ASSERT_EQ(problems.errors().size(), 1u);
  EXPECT_EQ(problems.errors()[0].pointer, "/layers/1/bottom/1");
  EXPECT_NE(problems.errors()[0].message.find("\"label\" is f32 and \"dense\" is f16"), std::string::npos)
      << problems.errors()[0].message;
}

}  // namespace
}  // namespace hctr::test
