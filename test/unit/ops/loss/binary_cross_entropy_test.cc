#include "ops/loss/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/devices.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

/// Registers the test cases. `valid`: number of local samples that are not padding. `all`: number of samples of the
/// global batch.
void binary_cases(auto& test, int32_t valid, int32_t all) {
  test.rounding(Rounding::function);
  test.state({.valid_samples = valid, .global_samples = all, .loss_scale = 8});
  test.forward([](Rig& t) {
    ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}, Type::wide),
                              t.out("probability", t["logits"].shape(), Type::wide));
  });
  test.backward([](Rig& t) {
    ops::binary_cross_entropy_backward(t.ctx, t["logits"], t["label"], 1, t.d("logits"));
    t.gradient_of_loss("loss", static_cast<double>(t.state().loss_scale));
  });
  test.expected([](const auto& t) {
    const std::vector<double> z = t["logits"], y = t["label"];
    const auto counted = static_cast<size_t>(t.state().valid_samples);
    double sum = 0;
    std::vector<double> probability(z.size()), d_logits(z.size());
    for (size_t b = 0; b < z.size(); ++b) {
      const double p = probability[b] = 1 / (1 + std::exp(-z[b]));
      if (b >= counted) continue;
      sum -= y[b] * std::log(p) + (1 - y[b]) * std::log1p(-p);
      d_logits[b] = static_cast<double>(t.state().loss_scale) * (p - y[b]) / t.state().global_samples;
    }
    t.expect("loss", {t.state().global_samples == 0 ? 0 : sum / t.state().global_samples});
    t.expect("probability", probability);
    t.expect("d_logits", d_logits);
  });
}

Input logits_of_one(int64_t batch) { return {"logits", {batch, 1}, -8, 8}; }
Input label_of_one(int64_t batch) { return {"label", {batch, 1}, 0, 1, Type::wide}; }

OP_TEST(BinaryCrossEntropy) {
  binary_cases(*this, 1 << 20, 3000);
  row("typical", {logits_of_one(64), label_of_one(64)});
  row("one sample", {logits_of_one(1), label_of_one(1)});
  row("many samples", {logits_of_one(4999), label_of_one(4999)});
  large("large", {logits_of_one(300001), label_of_one(300001)});
}

OP_TEST(BinaryCrossEntropyOfAPartOfTheRows) {
  binary_cases(*this, 13, 13);
  row("typical", {logits_of_one(64), label_of_one(64)});
  row("one more", {logits_of_one(14), label_of_one(14)});
}

OP_TEST(BinaryCrossEntropyWithoutSamples) {
  binary_cases(*this, 0, 0);
  row("padding alone", {logits_of_one(5), label_of_one(5)});
  row("no rows", {logits_of_one(0), label_of_one(0)});
}

/// A batch for one GPU block, and a batch for several blocks.
TEST(BinaryCrossEntropyOp, WritesTheGradientOfLogitsInTheSamePassBitForBit) {
  for (const Device device : devices())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const int64_t batch : {70, 4999}) {
        Rig t({device,
               dtype,
               dtype,
               {{"dense"}, {"rows of 16 bytes", 8}},
               2,
               {logits_of_one(batch), label_of_one(batch), {"weights", {batch, 1}, 0, 2, Type::wide}},
               {.valid_samples = 60, .global_samples = 61, .loss_scale = 8}});
        const Shape shape{batch, 1};
        const ops::TermWeights weights{t["weights"], 3};
        ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}, Type::wide),
                                  t.out("p", shape, Type::wide), weights);
        ops::binary_cross_entropy_backward(t.ctx, t["logits"], t["label"], 0.5f, t.out("d", shape), weights);
        ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss of both", {1}, Type::wide),
                                  t.out("p of both", shape, Type::wide), weights,
                                  ops::LogitGradient{t.out("d of both", shape), 0.5f});
        EXPECT_EQ(t.fetch(), std::vector<std::string>());
        for (const char* name : {"loss", "p", "d"}) EXPECT_EQ(t.bytes(name), t.bytes(cat(name, " of both"))) << name;
        EXPECT_NE(t.values("d")[0], 0);
      }
}

TEST(BinaryCrossEntropyOp, KnownNumbers) {
  for (const Device device : devices()) {
    Rig t({device,
           DType::f32,
           DType::f32,
           {{"dense"}},
           1,
           {{"logits", {1, 1}, 0, 0}, {"label", {1, 1}, 1, 1}},
           {.valid_samples = 1, .global_samples = 1}});
    ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}), t.out("probability", {1, 1}));
    t.fetch();
    EXPECT_FLOAT_EQ(static_cast<float>(t.values("loss")[0]), 0.69314718f);
    EXPECT_EQ(t.values("probability")[0], 0.5);
  }
}

TEST(BinaryCrossEntropyOp, ADivergedLogitShowsAndOneInThePaddingDoesNot) {
  for (const Device device : devices())
    for (const int32_t valid : {2, 1}) {
      Rig t({device,
             DType::f32,
             DType::f32,
             {{"dense"}},
             1,
             {{"logits", {2, 1}}, {"label", {2, 1}, 0, 0}},
             {.valid_samples = valid, .global_samples = valid}});
      t.perturb("logits", 1, NAN);
      ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}), t.out("probability", {2, 1}));
      ops::binary_cross_entropy_backward(t.ctx, t["logits"], t["label"], 1, t.out("d_logits", {2, 1}));
      t.fetch();
      EXPECT_EQ(std::isnan(t.values("loss")[0]), valid == 2);
      EXPECT_EQ(std::isnan(t.values("d_logits")[1]), valid == 2);
    }
}

TEST(BinaryCrossEntropyOp, HugeLogitsDoNotOverflow) {
  for (const Device device : devices())
    for (const double z : {300.0, -300.0}) {
      Rig t({device,
             DType::f32,
             DType::f32,
             {{"dense"}},
             1,
             {{"logits", {1, 1}, z, z}, {"label", {1, 1}, 1, 1}},
             {.valid_samples = 1, .global_samples = 1}});
      ops::binary_cross_entropy(t.ctx, t["logits"], t["label"], t.out("loss", {1}), t.out("probability", {1, 1}));
      t.fetch();
      EXPECT_EQ(t.values("loss")[0], z > 0 ? 0 : 300);
      EXPECT_EQ(t.values("probability")[0], z > 0 ? 1 : 0);
    }
}

}  // namespace
}  // namespace hctr::test
