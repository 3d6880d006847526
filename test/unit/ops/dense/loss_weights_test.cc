// Weights of samples and of the positive class, in all three losses.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/loss/cross_entropy.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

constexpr float kPositive = 2.5f;

/// Rows from the 62nd on are padding and do not count.
void weighted_cases(auto& test) {
  test.rounding(Rounding::function);
  test.state({.valid_samples = 61, .global_samples = 100, .loss_scale = 8});
  test.forward([](Rig& t) {
    ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}, Type::wide),
                              t.out("probability", t["logits"].shape(), Type::wide), {t["weights"], kPositive});
  });
  test.backward([](Rig& t) {
    ops::binary_cross_entropy_backward(t.ctx, t["logits"], t["label"], 1, t.d("logits"), {t["weights"], kPositive});
    t.gradient_of_loss("loss", static_cast<double>(t.state().loss_scale));
  });
  test.expected([](const auto& t) {
    const std::vector<double> z = t["logits"], y = t["label"], w = t["weights"];
    double sum = 0;
    std::vector<double> d_logits(z.size());
    for (size_t b = 0; b < std::min<size_t>(z.size(), 61); ++b) {
      const double p = 1 / (1 + std::exp(-z[b])), weight = w[b] * (y[b] < 0.5 ? 1 : static_cast<double>(kPositive));
      sum -= weight * (y[b] * std::log(p) + (1 - y[b]) * std::log1p(-p));
      d_logits[b] = weight * 8 * (p - y[b]) / 100;
    }
    t.expect("loss", {sum / 100});
    t.expect("d_logits", d_logits);
  });
}

OP_TEST(WeightedBinaryCrossEntropy) {
  weighted_cases(*this);
  const auto inputs = [](int64_t batch) -> std::vector<Input> {
    return {{"logits", {batch, 1}, -8, 8},
            {"label", {batch, 1}, 0, 1, Type::wide},
            {"weights", {batch, 1}, 0, 3, Type::wide}};
  };
  row("typical", inputs(64));
  row("one sample", inputs(1));
  row("many samples", inputs(4999));
}

enum class Loss { binary, two_class, multi };

struct Result {
  double loss;
  std::vector<double> d_logits, probability;
};

/// Runs a loss on four samples. `z`: the first logit of each sample. `y`: labels. `w`: weights (empty: none).
Result run(Device device, Loss kind, const std::vector<double>& z, const std::vector<double>& y,
           const std::vector<double>& w, float positive, float log_negative_share = 0) {
  const int64_t columns = kind == Loss::binary ? 1 : 2, labels = kind == Loss::multi ? 2 : 1;
  Rig t({device,
         DType::f32,
         DType::f32,
         {{"dense"}},
         1,
         {{"logits", {4, columns}, 0, 0}, {"label", {4, labels}, 0, 0}, {"weights", {4, 1}, 0, 0}},
         {.valid_samples = 4, .global_samples = 4, .log_negative_share = log_negative_share}});
  for (int64_t b = 0; b < 4; ++b) {
    const auto at = static_cast<size_t>(b);
    for (int64_t c = 0; c < columns; ++c) t.perturb("logits", b * columns + c, c == 0 ? z[at] : 0.25 - z[at]);
    for (int64_t c = 0; c < labels; ++c) t.perturb("label", b * labels + c, c == 0 ? y[at] : 1 - y[at]);
    t.perturb("weights", b, w.empty() ? 0 : w[at]);
  }
  ops::TermWeights weights{{}, positive};
  if (!w.empty()) weights.samples = t["weights"];
  const Tensor loss = t.out("loss", {1}), probability = t.out("probability", {4, labels}),
               d_logits = t.out("d_logits", {4, columns});
  const std::vector<float> of_label = {1, 2};
  switch (kind) {
    case Loss::binary:
      ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], loss, probability, weights);
      ops::binary_cross_entropy_backward(t.ctx, t["logits"], t["label"], 1, d_logits, weights);
      break;
    case Loss::two_class:
      ops::two_class_cross_entropy(t.ctx, t["logits"], t["label"], loss, probability, weights);
      ops::two_class_cross_entropy_backward(t.ctx, t["logits"], t["label"], 1, d_logits, weights);
      break;
    case Loss::multi:
      ops::multi_cross_entropy(t.ctx, t["logits"], t["label"], of_label, loss, probability, weights);
      ops::multi_cross_entropy_backward(t.ctx, t["logits"], t["label"], of_label, 1, d_logits, weights);
  }
  t.fetch();
  return {t.values("loss")[0], t.values("d_logits"), t.values("probability")};
}

TEST(LossWeights, TwoIsTheRowTwiceAndNoneIsTheRowLeftOut) {
  for (const Device device : devices())
    for (const Loss kind : {Loss::binary, Loss::two_class, Loss::multi}) {
      const Result twice = run(device, kind, {0.5, -1, 2, 2}, {1, 0, 1, 1}, {}, 1);
      const Result weighted = run(device, kind, {0.5, -1, 2, 7}, {1, 0, 1, 0}, {1, 1, 2, 0}, 1);
      EXPECT_NEAR(twice.loss, weighted.loss, 1e-6 * std::abs(twice.loss));
      const size_t columns = twice.d_logits.size() / 4;
      for (size_t c = 0; c < columns; ++c) {
        for (size_t b = 0; b < 2; ++b)
          EXPECT_FLOAT_EQ(static_cast<float>(twice.d_logits[b * columns + c]),
                          static_cast<float>(weighted.d_logits[b * columns + c]));
        EXPECT_FLOAT_EQ(static_cast<float>(twice.d_logits[2 * columns + c] + twice.d_logits[3 * columns + c]),
                        static_cast<float>(weighted.d_logits[2 * columns + c]));
        EXPECT_EQ(weighted.d_logits[3 * columns + c], 0);
      }
    }
}

TEST(LossWeights, APositiveWeightIsThatOfThePositiveRows) {
  for (const Device device : devices())
    for (const Loss kind : {Loss::binary, Loss::two_class}) {
      const Result of_class = run(device, kind, {0.5, -1, 2, 3}, {1, 0, 1, 0}, {}, 3);
      const Result of_rows = run(device, kind, {0.5, -1, 2, 3}, {1, 0, 1, 0}, {3, 1, 3, 1}, 1);
      EXPECT_EQ(of_class.loss, of_rows.loss);
      EXPECT_EQ(of_class.d_logits, of_rows.d_logits);
    }
}

TEST(SampledNegatives, TheLossIsThatOfLogitsMovedByTheLogOfTheShareAndTheProbabilityThatOfAllSamples) {
  const double moved = std::log(10.0);
  const std::vector<double> z = {0.5, -1, 2, -3}, y = {1, 0, 1, 0};
  for (const Device device : devices()) {
    const Result sampled = run(device, Loss::binary, z, y, {}, 2, static_cast<float>(-moved));
    const Result by_hand = run(device, Loss::binary, {0.5 + moved, -1 + moved, 2 + moved, -3 + moved}, y, {}, 2);
    EXPECT_NEAR(sampled.loss, by_hand.loss, 1e-6 * by_hand.loss);
    for (size_t b = 0; b < 4; ++b) {
      EXPECT_NEAR(sampled.d_logits[b], by_hand.d_logits[b], 1e-6);
      EXPECT_NEAR(sampled.probability[b], 1 / (1 + std::exp(-z[b])), 1e-6);
      // Negative sampling at rate 0.1: the odds p / (1 - p) over all samples are a tenth of the odds q / (1 - q) over
      // the kept samples.
      const double p = sampled.probability[b], q = by_hand.probability[b];
      EXPECT_NEAR(p, q / (q + (1 - q) * 10), 1e-6);
    }
    // For two classes, the test sets z_1 = 0.25 - z_0, so z_1 - z_0 = 0.25 - 2 z_0.
    const auto two = [](double difference) { return (0.25 - difference) / 2; };
    const std::vector<double> first = {two(0.5), two(-1), two(2), two(-3)},
                              first_moved = {two(0.5 + moved), two(-1 + moved), two(2 + moved), two(-3 + moved)};
    const Result two_class = run(device, Loss::two_class, first, y, {}, 2, static_cast<float>(-moved));
    const Result two_by_hand = run(device, Loss::two_class, first_moved, y, {}, 2);
    EXPECT_NEAR(two_class.loss, two_by_hand.loss, 1e-6 * two_by_hand.loss);
    for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(two_class.d_logits[i], two_by_hand.d_logits[i], 1e-6);
    const Result none = run(device, Loss::binary, z, y, {}, 2, 0), plain = run(device, Loss::binary, z, y, {}, 2);
    EXPECT_EQ(none.loss, plain.loss);
    EXPECT_EQ(none.d_logits, plain.d_logits);
  }
}

}  // namespace
}  // namespace hctr::test
