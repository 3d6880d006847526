#include "ops/common/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

constexpr float kRate = 0.3f;
constexpr uint64_t kStream = 99;

/// Whether dropout keeps the element at (row, column), by the formula of dropout_rule.h. `width`: elements per row. A
/// row is one sample.
bool keeps(uint64_t seed, const StepState& state, size_t row, size_t column, size_t width, float rate = kRate) {
  const uint64_t block = (static_cast<uint64_t>(state.first_sample) + row) * ((width + 31) / 32) + column / 32;
  const Random4 draw =
      philox<7>(random_key(seed, kStream), static_cast<uint64_t>(state.step), block * 4 + column % 8 / 2);
  const uint32_t bits = draw.v[column % 32 / 8];
  return (column % 2 ? bits >> 16 : bits & 0xffff) >= std::lround(rate * 65536);
}

void dropout_cases(auto& test, int64_t first_sample) {
  test.row("typical", {{"x", {64, 32}}});
  test.row("odd columns", {{"x", {37, 33}}});
  test.row("columns of six", {{"x", {13, 6}}});
  test.row("one column", {{"x", {70, 1}}});
  test.row("one element", {{"x", {1, 1}}});
  test.row("long rows", {{"x", {2, 2055}}});
  test.row("three dimensions", {{"x", {5, 3, 7}}});
  test.row("no rows", {{"x", {0, 4}}});
  test.large("large", {{"x", {5000, 1031}}});
  test.state({.step = 11, .first_sample = first_sample});
  test.forward([](Rig& t) { ops::dropout(t.ctx, kRate, kStream, t["x"], t.out("y", t["x"].shape())); });
  test.backward([](Rig& t) { ops::dropout_backward(t.ctx, kRate, kStream, t.d("y"), t.d("x")); });
  test.expected([](const auto& t) {
    const std::vector<double> x = t["x"];
    const size_t rows = t.size("x", 0), width = rows ? x.size() / rows : 0;
    std::vector<double> y(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (keeps(7, t.state(), i / width, i % width, width)) y[i] = x[i] * double{ops::dropout_scale(kRate)};
    t.expect("y", y);
  });
}

OP_TEST(Dropout) { dropout_cases(*this, 40); }
OP_TEST(DropoutFromAnOddSample) { dropout_cases(*this, 1'000'000'000'003); }

OP_TEST(DropoutInPlace) {
  row("typical", {{"x", {64, 33}}});
  forward([](Rig& t) { ops::dropout(t.ctx, kRate, kStream, t.inout("x"), t.inout("x")); });
}

TEST(DropoutOp, MasksAreTheSameOnEveryDeviceAndType) {
  HCTR_SKIP_WITHOUT_GPU();
  const auto mask = [](Device device, DType dtype) {
    Rig t({device, dtype, dtype, {{"dense"}}, 1, {{"x", {1001, 77}, 1, 1}}, {.step = 5, .first_sample = 3}});
    ops::dropout(t.ctx, kRate, kStream, t["x"], t.out("y", {1001, 77}));
    t.fetch();
    std::vector<bool> kept;
    for (const double y : t.values("y")) kept.push_back(y != 0);
    return kept;
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) EXPECT_EQ(mask(kGpu, dtype), mask(kCpu, DType::f64));
}

TEST(DropoutOp, KeepsTheRightFractionAndOtherElementsInTheNextStep) {
  const auto mask = [](float rate, int64_t step) {
    Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {1000, 100}, 1, 1}}, {.step = step}});
    ops::dropout(t.ctx, rate, kStream, t["x"], t.out("y", {1000, 100}));
    t.fetch();
    return t.values("y");
  };
  for (const float rate : {1e-4f, 0.1f, 0.5f, 0.9f, 0.9999f}) {
    double kept = 0, same = 0;
    const std::vector<double> now = mask(rate, 0), next = mask(rate, 1);
    for (size_t i = 0; i < now.size(); ++i) {
      kept += now[i] != 0;
      same += (now[i] != 0) == (next[i] != 0);
    }
    const double p = 1 - static_cast<double>(rate), agree = p * p + (1 - p) * (1 - p), n = 1e5;
    EXPECT_NEAR(kept / n, p, 5 * std::sqrt(p * (1 - p) / n) + 1e-5) << "rate " << rate;
    EXPECT_NEAR(same / n, agree, 5 * std::sqrt(agree * (1 - agree) / n) + 1e-5) << "rate " << rate;
  }
}

TEST(DropoutOp, ALastBitDecidesExactly) {
  // An element with random bits k is kept at rate k / 2^16, and dropped at rate (k + 1) / 2^16.
  const StepState state{.step = 2};
  const uint32_t k = philox<7>(random_key(7, kStream), 2, 0).v[0] & 0xffff;
  ASSERT_LT(k, 65535u);
  for (const uint32_t at : {k, k + 1}) {
    Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {1, 1}, 1, 1}}, state});
    ops::dropout(t.ctx, static_cast<float>(at) / 65536, kStream, t["x"], t.out("y", {1, 1}));
    t.fetch();
    EXPECT_EQ(t.values("y")[0] != 0, at == k) << at;
  }
}

TEST(DropoutOp, NeighboursInARowAndAColumnAreIndependent) {
  constexpr size_t kRows = 512, kColumns = 512;
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {kRows, kColumns}, 1, 1}}, {}});
  ops::dropout(t.ctx, 0.5f, kStream, t["x"], t.out("y", {kRows, kColumns}));
  t.fetch();
  const std::vector<double> y = t.values("y");
  for (const size_t apart : {size_t{1}, size_t{2}, size_t{8}, size_t{32}, kColumns, 8 * kColumns}) {
    double same = 0;
    for (size_t i = 0; i + apart < y.size(); ++i) same += (y[i] != 0) == (y[i + apart] != 0);
    const auto n = static_cast<double>(y.size() - apart);
    EXPECT_NEAR(same / n, 0.5, 5 * std::sqrt(0.25 / n)) << apart << " elements apart";
  }
}

TEST(DropoutOp, RefusesARateOfOne) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {1, 1}}}, {}});
  EXPECT_EQ(message_of(Kind::bug, [&] { ops::dropout(t.ctx, 1, 0, t["x"], t.out("y", {1, 1})); }).substr(0, 17),
            "dropout of rate 1");
}

}  // namespace
}  // namespace hctr::test
