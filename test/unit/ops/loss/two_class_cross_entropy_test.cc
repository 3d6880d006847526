#include "ops/loss/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

constexpr float kWeight = 0.5f;

/// Registers the test cases. `valid`: number of local samples that are not padding. `all`: number of samples of the
/// global batch.
void two_class_cases(auto& test, int32_t valid, int32_t all) {
  test.rounding(Rounding::function);
  test.state({.valid_samples = valid, .global_samples = all, .loss_scale = 8});
  test.forward([](Rig& t) {
    ops::two_class_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}, Type::wide),
                                 t.out("probability", t["label"].shape(), Type::wide));
  });
  test.backward([](Rig& t) {
    ops::two_class_cross_entropy_backward(t.ctx, t["logits"], t["label"], kWeight, t.d("logits"));
    t.gradient_of_loss("loss", static_cast<double>(t.state().loss_scale * kWeight));
  });
  test.expected([](const auto& t) {
    const std::vector<double> z = t["logits"], y = t["label"];
    std::vector<double> probability(y.size()), d_logits(z.size());
    double sum = 0;
    for (size_t b = 0; b < y.size(); ++b) {
      const double all_of_it = std::exp(z[2 * b]) + std::exp(z[2 * b + 1]);
      const size_t k = y[b] < 0.5 ? 0 : 1;
      probability[b] = std::exp(z[2 * b + 1]) / all_of_it;
      if (b >= static_cast<size_t>(t.state().valid_samples)) continue;
      sum -= std::log(std::exp(z[2 * b + k]) / all_of_it);
      for (size_t c = 0; c < 2; ++c)
        d_logits[2 * b + c] = 4 * (std::exp(z[2 * b + c]) / all_of_it - (c == k ? 1 : 0)) / t.state().global_samples;
    }
    t.expect("loss", {t.state().global_samples == 0 ? 0 : sum / t.state().global_samples});
    t.expect("probability", probability);
    t.expect("d_logits", d_logits);
  });
}

Input logits_of_two(int64_t batch) { return {"logits", {batch, 2}, -4, 4}; }
Input class_label(int64_t batch) { return {"label", {batch, 1}, 0, 1, Type::wide}; }

OP_TEST(TwoClassCrossEntropy) {
  two_class_cases(*this, 1 << 20, 3000);
  row("typical", {logits_of_two(64), class_label(64)});
  row("one sample", {logits_of_two(1), class_label(1)});
  row("many samples", {logits_of_two(4999), class_label(4999)});
}

OP_TEST(TwoClassCrossEntropyOfAPartOfTheRows) {
  two_class_cases(*this, 13, 13);
  row("typical", {logits_of_two(64), class_label(64)});
}

OP_TEST(TwoClassCrossEntropyWithoutSamples) {
  two_class_cases(*this, 0, 0);
  row("padding alone", {logits_of_two(5), class_label(5)});
  row("no rows", {logits_of_two(0), class_label(0)});
}

TEST(TwoClassCrossEntropyOp, HugeLogitsDoNotOverflow) {
  for (const Device device : devices()) {
    Rig t({device,
           DType::f32,
           DType::f32,
           {{"dense"}},
           1,
           {{"logits", {1, 2}, 0, 0}, {"label", {1, 1}, 0, 0}},
           {.valid_samples = 1, .global_samples = 1}});
    t.perturb("logits", 1, 500);
    ops::two_class_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}), t.out("probability", {1, 1}));
    t.fetch();
    EXPECT_EQ(t.values("loss")[0], 500);
    EXPECT_EQ(t.values("probability")[0], 1);
  }
}

}  // namespace
}  // namespace hctr::test
