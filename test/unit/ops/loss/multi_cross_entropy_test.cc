#include "ops/loss/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

std::vector<float> label_weights(int64_t labels) {
  std::vector<float> t;
  for (int64_t j = 0; j < labels; ++j) t.push_back(0.25f * static_cast<float>(j % 5));
  return t;
}

void multi_label_cases(auto& test, int32_t valid, int32_t all) {
  test.rounding(Rounding::function);
  test.state({.valid_samples = valid, .global_samples = all, .loss_scale = 4096});
  test.forward([](Rig& t) {
    const Shape shape = t["logits"].shape();
    ops::multi_cross_entropy(t.ctx, t["logits"], t["label"], label_weights(shape[1]), t.out("loss", {1}, Type::wide),
                             t.out("probability", shape, Type::wide));
  });
  test.backward([](Rig& t) {
    ops::multi_cross_entropy_backward(t.ctx, t["logits"], t["label"], label_weights(t["logits"].dim(1)), 0.5f,
                                      t.d("logits"));
    t.gradient_of_loss("loss", static_cast<double>(t.state().loss_scale) * 0.5);
  });
}

/// Inputs in which about a quarter of the labels are missing.
std::vector<Input> multi_label_inputs(int64_t batch, int64_t labels) {
  return {{"logits", {batch, labels}, -8, 8}, {"label", {batch, labels}, -1, 1, Type::wide}};
}

OP_TEST(MultiCrossEntropy) {
  multi_label_cases(*this, 1 << 20, 100);
  row("typical", multi_label_inputs(64, 5));
  row("one label", multi_label_inputs(70, 1));
  row("few elements", multi_label_inputs(3, 3));
  row("more labels than one launch takes", multi_label_inputs(9, 700));
  expected([](const auto& t) {
    const std::vector<double> z = t["logits"], y = t["label"];
    const size_t labels = t.size("logits", 1);
    const std::vector<float> w = label_weights(static_cast<int64_t>(labels));
    double sum = 0;
    std::vector<double> d_logits(z.size());
    for (size_t i = 0; i < z.size(); ++i) {
      if (y[i] < -0.5) continue;
      const double p = 1 / (1 + std::exp(-z[i])), of_label = static_cast<double>(w[i % labels]);
      sum -= of_label * (y[i] * std::log(p) + (1 - y[i]) * std::log(1 - p));
      d_logits[i] = 4096 * 0.5 * of_label * (p - y[i]) / 100 / static_cast<double>(labels);
    }
    t.expect("loss", {sum / 100 / static_cast<double>(labels)});
    t.expect("d_logits", d_logits);
  });
}

OP_TEST(MultiCrossEntropyOfAPartOfTheRows) {
  multi_label_cases(*this, 13, 13);
  row("typical", multi_label_inputs(64, 4));
  expected([](const auto& t) {
    const std::vector<double> d_logits = t["d_logits"];
    for (size_t i = 13 * 4; i < d_logits.size(); ++i) EXPECT_EQ(d_logits[i], 0);
  });
}

OP_TEST(MultiCrossEntropyWithoutSamples) {
  multi_label_cases(*this, 0, 0);
  row("padding alone", multi_label_inputs(5, 2));
  expected([](const auto& t) { t.expect("loss", {0}); });
}

TEST(MultiCrossEntropyOp, NeedsAWeightForEachLabel) {
  Rig t({{},
         DType::f32,
         DType::f32,
         {{"dense"}},
         1,
         multi_label_inputs(2, 3),
         {.valid_samples = 2, .global_samples = 2}});
  const std::string message = message_of(Kind::bug, [&] {
    ops::multi_cross_entropy(t.ctx, t["logits"], t["label"], label_weights(2), t.out("loss", {1}),
                             t.out("probability", {2, 3}));
  });
  EXPECT_EQ(message.rfind("multi_cross_entropy: 2 weights for 3 labels", 0), 0u) << message;
}

}  // namespace
}  // namespace hctr::test
