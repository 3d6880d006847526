#include "ops/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <string>

#include "core/base/random.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/op_test.h"
#include "support/plain_optimizer.h"

namespace hctr::test {
namespace {

using ops::Optimizer;
using Rule = Optimizer::Kind;

/// Registers test cases, which compare the rule on each device with the CPU.
void rows(OpTest& test, const Optimizer& optimizer) {
  test.dense_only();
  test.f32_only();
  test.state({.step = 9, .updates = 2, .learning_rate = 0.5f, .loss_scale = 4});
  test.rounding(optimizer.kind == Rule::ftrl ? Rounding::sum : Rounding::function);
  const auto inputs = [&](Shape shape) {
    std::vector<Input> all = {{"w", shape}, {"g", shape, -4, 4}};
    // FTRL has the states n >= 0 and z. The other rules have m and v >= 0, or one state.
    const bool is_ftrl = optimizer.kind == Rule::ftrl;
    if (optimizer.states() > 0) all.push_back({"first", shape, optimizer.states() == 2 && !is_ftrl ? -1.0 : 0.0, 1});
    if (optimizer.states() > 1) all.push_back({"second", shape, is_ftrl ? -0.5 : 0.0, is_ftrl ? 0.5 : 1.0});
    return all;
  };
  test.row("typical", inputs({64, 33}));
  test.row("one element", inputs({1}));
  test.row("five", inputs({5}));
  test.row("none", inputs({0}));
  test.row("several pieces", inputs({40000}));
  if (optimizer.kind == Rule::adam) test.large("large", inputs({5'000'011}));
  test.forward([optimizer](Rig& t) {
    std::vector<Tensor> states;
    if (optimizer.states() > 0) states.push_back(t.inout("first"));
    if (optimizer.states() > 1) states.push_back(t.inout("second"));
    ops::update_dense(t.ctx, optimizer, t["g"], t.inout("w"), states, std::nullopt);
  });
}

/// Tests update_dense() for each rule of every_rule(). The test is named after the rule.
class UpdateDense : public OpTest {
 public:
  explicit UpdateDense(const Optimizer& optimizer) : optimizer_(optimizer) { optimizer_.rate_factor = 0.5f; }
  void define() override { rows(*this, optimizer_); }

 private:
  Optimizer optimizer_;
};

const bool kRegistered = [] {
  static std::list<std::string> names;  // gtest keeps pointers to the names
  for (const Optimizer& optimizer : every_rule()) {
    const auto same = std::count_if(names.begin(), names.end(), [&](const std::string& name) {
      return name.rfind("Update" + optimizer_type(optimizer.kind).name + "_", 0) == 0;
    });
    names.push_back(cat("Update", optimizer_type(optimizer.kind).name, "_", same + 1));
    OpTestRegistration(names.back().c_str(), new UpdateDense(optimizer));
  }
  return true;
}();

/// Updates weights over several steps. `g`: the gradient times the loss scale.
class DenseRun {
 public:
  DenseRun(Device device, const Optimizer& optimizer, const std::vector<float>& w, DType copy_type = DType::f16)
      : optimizer_(optimizer),
        copy_type_(copy_type),
        count_(static_cast<int64_t>(w.size())),
        runtime_(device, {.threads = 2}),
        state_(device, sizeof(StepState)),
        g_(device, w.size() * sizeof(float)),
        w_(device, w.size() * sizeof(float)),
        copy_(device, w.size() * sizeof(uint16_t)),
        spoiled_(device, sizeof(int32_t)) {
    zero_bytes(runtime_.compute_stream(), spoiled_.data(), spoiled_.bytes());
    zero_bytes(runtime_.compute_stream(), copy_.data(), copy_.bytes());
    for (int s = 0; s < optimizer.states(); ++s) {
      states_.emplace_back(device, w.size() * sizeof(float));
      from_host(runtime_.compute_stream(), tensor(states_.back()), std::vector<float>(w.size(), optimizer.start(s)));
    }
    from_host(runtime_.compute_stream(), tensor(w_), w);
  }

  void step(const std::vector<float>& g, float rate, bool skip = false) {
    const StepState state{.step = ++steps_ + 40,
                          .updates = updates_,
                          .learning_rate = rate,
                          .loss_scale = 8,
                          .skip = skip,
                          .spoiled = reinterpret_cast<int32_t*>(spoiled_.data())};
    if (!skip) ++updates_;
    copy_bytes(runtime_.compute_stream(), state_.data(), &state, sizeof state);
    from_host(runtime_.compute_stream(), tensor(g_), g);
    std::vector<Tensor> states;
    for (const Buffer& each : states_) states.push_back(tensor(each));
    Context ctx(runtime_, runtime_.compute_stream(), reinterpret_cast<const StepState*>(state_.data()));
    ops::update_dense(ctx, optimizer_, tensor(g_), tensor(w_), states, copy());
    runtime_.compute_stream().synchronize();
  }
  /// Whether an update has reported a weight that is not finite.
  bool spoiled() const {
    int32_t flag = 0;
    copy_bytes(runtime_.compute_stream(), &flag, spoiled_.data(), sizeof flag);
    runtime_.compute_stream().synchronize();
    return flag != 0;
  }
  /// Returns the rounded copy of the weights.
  template <class T>
  std::vector<float> rounded() const {
    const std::vector<T> values = to_host<T>(runtime_.compute_stream(), copy());
    return {values.begin(), values.end()};
  }
  std::vector<float> w() const { return to_host<float>(runtime_.compute_stream(), tensor(w_)); }
  /// The weights, followed by each state.
  std::vector<float> all() const {
    std::vector<float> out = w();
    for (const Buffer& each : states_) {
      const auto state = to_host<float>(runtime_.compute_stream(), tensor(each));
      out.insert(out.end(), state.begin(), state.end());
    }
    return out;
  }

 private:
  Tensor tensor(const Buffer& buffer) const {
    return Tensor(buffer.data(), TensorSpec(DType::f32, {count_}), buffer.device());
  }

  Tensor copy() const { return Tensor(copy_.data(), TensorSpec(copy_type_, {count_}), copy_.device()); }

  Optimizer optimizer_;
  DType copy_type_;
  int64_t count_, steps_ = 0, updates_ = 0;
  Runtime runtime_;
  Buffer state_, g_, w_, copy_, spoiled_;
  std::vector<Buffer> states_;
};

/// Values in [-1, 1); every seventh value is 0.
std::vector<float> numbers(uint64_t seed, size_t count = 77) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = i % 7 == 3 ? 0.0f : symmetric_float(random_bits(seed, 1, i), 1);
  return out;
}

TEST(OptimizerOp, EveryRuleFollowsItsPaperOverManySteps) {
  for (const Device device : devices())
    for (Optimizer optimizer : every_rule()) {
      SCOPED_TRACE(name_of_rule(optimizer));
      optimizer.rate_factor = 0.5f;
      const std::vector<float> start = numbers(1);
      DenseRun run(device, optimizer, start);
      std::vector<PlainWeight> plain;
      for (const float w : start) plain.emplace_back(optimizer, static_cast<double>(w));
      for (int64_t t = 1; t <= 30; ++t) {
        // The learning rate varies. In FTRL, a change of the rate alone must not change a weight.
        const float rate = 0.02f * static_cast<float>(1 + t % 3);
        const std::vector<float> g = numbers(static_cast<uint64_t>(10 + t));
        run.step(g, rate);
        const std::vector<float> w = run.w();
        for (size_t i = 0; i < w.size(); ++i) {
          plain_update(optimizer, plain[i], static_cast<double>(g[i]) / 8, static_cast<double>(rate) / 2, t);
          ASSERT_NEAR(static_cast<double>(w[i]), plain[i].w, 1e-5 * (1 + std::abs(plain[i].w)))
              << "weight " << i << " after step " << t;
        }
      }
    }
}

TEST(OptimizerOp, AdamFollowsThePaperWithBiasCorrectedMoments) {
  // Algorithm 1 of the Adam paper, for a gradient of 0.5 in every step.
  for (const Device device : devices()) {
    DenseRun run(device, {.epsilon = 1e-8f}, {1.0f});
    double expected = 1, m = 0, v = 0;
    for (int t = 1; t <= 3; ++t) {
      run.step({4.0f}, 0.1f);
      m = 0.9 * m + 0.1 * 0.5;
      v = 0.999 * v + 0.001 * 0.25;
      expected -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
      EXPECT_NEAR(static_cast<double>(run.w()[0]), expected, 2e-6) << "step " << t;
    }
  }
}

TEST(OptimizerOp, AGradientOfZeroChangesNothingWhereTheRuleSaysSo) {
  for (const Device device : devices())
    for (const Optimizer& optimizer : every_rule()) {
      DenseRun run(device, optimizer, numbers(1));
      run.step(numbers(2), 0.1f);
      const std::vector<float> before = run.all();
      run.step(std::vector<float>(77, 0.0f), 0.05f);
      EXPECT_EQ(run.all() == before, optimizer.zero_gradient_is_noop()) << name_of_rule(optimizer);
    }
}

TEST(OptimizerOp, ARateOfZeroMovesNoWeight) {
  for (const Device device : devices())
    for (const Optimizer& optimizer : every_rule()) {
      DenseRun run(device, optimizer, numbers(1));
      for (uint64_t t = 0; t < 3; ++t) run.step(numbers(2 + t), 0.0f);
      EXPECT_EQ(run.w(), numbers(1)) << name_of_rule(optimizer);
      for (const float number : run.all()) EXPECT_TRUE(std::isfinite(number)) << name_of_rule(optimizer);
    }
}

TEST(OptimizerOp, ASkippedStepChangesNothing) {
  const std::vector<float> overflow(77, INFINITY);
  for (const Device device : devices())
    for (const Optimizer& optimizer : every_rule()) {
      DenseRun run(device, optimizer, numbers(1)), without(device, optimizer, numbers(1));
      for (DenseRun* each : {&run, &without}) each->step(numbers(2), 0.1f);
      run.step(overflow, 0.1f, true);
      EXPECT_EQ(run.all(), without.all()) << name_of_rule(optimizer);
      for (DenseRun* each : {&run, &without}) each->step(numbers(3), 0.1f);
      EXPECT_EQ(run.all(), without.all()) << name_of_rule(optimizer) << ": the skipped step was counted as an update";
    }
}

TEST(OptimizerOp, NanGradientsGiveNanWeights) {
  for (const Device device : devices())
    for (const Optimizer& optimizer : every_rule()) {
      DenseRun run(device, optimizer, {0.0f, 1.0f});
      for (int t = 0; t < 2; ++t) run.step({NAN, NAN}, 0.1f);
      for (const float w : run.w()) EXPECT_TRUE(std::isnan(w)) << name_of_rule(optimizer);
    }
}

TEST(OptimizerOp, FtrlStartsWhereAWeightIsAndHoldsZerosUntilTheirGradientsAddUp) {
  for (const Device device : devices()) {
    // Without penalties, FTRL subtracts g * lr / (beta + sqrt(sum of g^2)). Here this is 0.5 * 0.5 / (1 + 0.5).
    DenseRun free(device, {.kind = Rule::ftrl, .beta = 1}, {1.0f, 0.0f});
    free.step({4.0f, 4.0f}, 0.5f);
    EXPECT_FLOAT_EQ(free.w()[0], 1 - 0.5f / 1.5f * 0.5f);
    EXPECT_FLOAT_EQ(free.w()[1], -0.5f / 1.5f * 0.5f);
    DenseRun held(device, {.kind = Rule::ftrl, .beta = 1, .lambda1 = 1.25f}, {0.0f});
    for (int t = 0; t < 2; ++t) held.step({4.0f}, 0.5f);  // after these steps z is 1
    EXPECT_EQ(held.w()[0], 0.0f);
    held.step({4.0f}, 0.5f);  // after this step z is 1.5, and n is 0.75
    EXPECT_FLOAT_EQ(held.w()[0], -0.25f * 0.5f / (1 + std::sqrt(0.75f)));
    for (int t = 0; t < 2; ++t) held.step({-4.0f}, 0.5f);
    EXPECT_EQ(held.w()[0], 0.0f) << "gradients that cancel leave the weight at exactly 0";
  }
}

TEST(OptimizerOp, AGradientWhoseSquareUnderflowsIsHandled) {
  for (const Device device : devices())
    for (const Optimizer& optimizer : every_rule()) {
      DenseRun run(device, optimizer, {0.0f, 1.0f});
      run.step({1e-30f, 1e-30f}, 0.1f);
      for (const float w : run.w()) EXPECT_TRUE(std::isfinite(w)) << name_of_rule(optimizer);
    }
}

template <class T>
void expect_rounded_copies(DType type) {
  for (const Device device : devices())
    for (const Optimizer& optimizer : every_rule())
      for (const size_t count : {size_t{1}, size_t{77}, size_t{40000}}) {
        SCOPED_TRACE(cat(name_of_rule(optimizer), ", ", count, " weights"));
        DenseRun run(device, optimizer, numbers(3, count), type);
        const auto expect_copy = [&] {
          std::vector<float> expected;
          for (const float w : run.w()) expected.push_back(static_cast<float>(T(w)));
          EXPECT_EQ(run.rounded<T>(), expected);
        };
        for (int step = 0; step < 2; ++step) run.step(numbers(4, count), 0.1f);
        expect_copy();
        run.step(numbers(5, count), 0.1f, true);  // a skipped step changes nothing
        expect_copy();
      }
}
TEST(OptimizerOp, RoundsTheWeightsToTheirCopy) {
  expect_rounded_copies<Half>(DType::f16);
  expect_rounded_copies<BFloat16>(DType::bf16);
}

TEST(OptimizerOp, RefusesTheWrongNumberOfStates) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"w", {1}}, {"g", {1}}}, {}});
  EXPECT_EQ(message_of(Kind::bug, [&] { ops::update_dense(t.ctx, {}, t["g"], t.inout("w"), {}, std::nullopt); })
                .substr(0, 34),
            "update_dense with 0 states, not 2;");
}

/// Tests every position in a pack of four and in the remainder, on each device.
TEST(OptimizerOp, ReportsAGradientThatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Device device : devices())
    for (const Optimizer& optimizer : every_rule()) {
      SCOPED_TRACE(cat(to_string(device), " ", optimizer_type(optimizer.kind).name));
      const std::vector<float> w(4099, 0.5f), finite(w.size(), 1e3f);
      for (const size_t at : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{4094}, size_t{4096}, size_t{4098}})
        for (const float bad : {kInf, -kInf, std::nanf("")}) {
          DenseRun run(device, optimizer, w);
          run.step(finite, 0.1f);
          EXPECT_FALSE(run.spoiled());
          std::vector<float> g = finite;
          g[at] = bad;
          run.step(g, 0.1f, true);
          EXPECT_FALSE(run.spoiled()) << "skipped";
          run.step(g, 0.1f);
          EXPECT_TRUE(run.spoiled()) << bad << " at " << at;
        }
    }
}

}  // namespace
}  // namespace hctr::test
