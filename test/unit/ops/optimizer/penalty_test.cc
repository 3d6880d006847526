#include "ops/optimizer/penalty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::Penalty;

void sums(auto& test, Penalty kind) {
  test.dense_only();
  test.f32_only();
  test.rounding(Rounding::sum);
  test.row("typical", {{"w", {64, 33}}, {"total", {1}, 2, 2}});
  test.row("fewer than parts", {{"w", {7}}, {"total", {1}, 2, 2}});
  test.row("none", {{"w", {0}}, {"total", {1}, 2, 2}});
  test.row("many", {{"w", {300001}}, {"total", {1}, 2, 2}});
  test.large("large", {{"w", {5'000'011}}, {"total", {1}, 2, 2}});
  test.forward([=](Rig& t) {
    ops::add_penalty(t.ctx, kind, 0.25f, t["w"], t.scratch("parts", ops::penalty_scratch()), t.inout("total"));
  });
  test.expected([=](const auto& t) {
    double sum = 0;
    for (const double w : t["w"]) sum += kind == Penalty::l1 ? std::abs(w) : w * w;
    t.expect("total", {2 + 0.25 * sum});
  });
}

OP_TEST(PenaltyL1) { sums(*this, Penalty::l1); }
OP_TEST(PenaltyL2) { sums(*this, Penalty::l2); }

void gradients(auto& test, Penalty kind) {
  test.dense_only();
  test.f32_only();
  test.row("typical", {{"w", {64, 33}}, {"dw", {64, 33}, 1, 1}});
  test.row("one element", {{"w", {1}}, {"dw", {1}, 1, 1}});
  test.row("none", {{"w", {0}}, {"dw", {0}, 1, 1}});
  test.row("zeros", {{"w", {3}, 0, 0}, {"dw", {3}, 1, 1}});
  test.state({.loss_scale = 16});
  test.forward([=](Rig& t) { ops::add_penalty_gradient(t.ctx, kind, 0.25f, t["w"], t.inout("dw")); });
  test.expected([=](const auto& t) {
    std::vector<double> dw;
    for (const double w : t["w"]) dw.push_back(1 + 16 * 0.25 * (kind == Penalty::l2 ? 2 * w : w > 0 ? 1 : -1));
    t.expect("dw", dw);
  });
}

OP_TEST(PenaltyGradientL1) { gradients(*this, Penalty::l1); }
OP_TEST(PenaltyGradientL2) { gradients(*this, Penalty::l2); }

}  // namespace
}  // namespace hctr::test
