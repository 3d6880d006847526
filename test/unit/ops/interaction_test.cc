#include "ops/interaction.h"

#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(Interaction) {
  row("dlrm", {{"a", {9, 32}}, {"e", {9, 26, 32}}});
  row("one slot", {{"a", {3, 8}}, {"e", {3, 1, 8}}});
  row("odd sizes", {{"a", {5, 11}}, {"e", {5, 6, 11}}});
  row("more than 31 slots", {{"a", {2, 5}}, {"e", {2, 70, 5}}});
  row("a block a sample", {{"a", {3, 12}}, {"e", {3, 45, 12}}});
  row("beyond shared memory", {{"a", {2, 4}}, {"e", {2, 300, 4}}});
  row("long vectors beyond shared memory", {{"a", {2, 1100}}, {"e", {2, 60, 1100}}});
  row("no rows", {{"a", {0, 4}}, {"e", {0, 3, 4}}});
  large("large", {{"a", {70000, 16}}, {"e", {70000, 26, 16}}});
  rounding(Rounding::sum);
  forward([](Rig& t) {
    const int64_t m = t["e"].dim(1) + 1;
    ops::interaction(t.ctx, t["a"], t["e"], t.out("y", {t["a"].dim(0), t["a"].dim(1) + m * (m - 1) / 2 + 1}));
  });
  backward([](Rig& t) { ops::interaction_backward(t.ctx, t["a"], t["e"], t.d("y"), t.d("a"), t.d("e")); });
}

TEST(InteractionOp, ByHand) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"a", {1, 2}, 2, 2}, {"e", {1, 2, 2}, 3, 3}}, {}});
  ops::interaction(t.ctx, t["a"], t["e"], t.out("y", {1, 6}));
  t.fetch();
  EXPECT_EQ(t.values("y"), (std::vector<double>{2, 2, 12, 12, 18, 0}));  // v0, (0,1), (0,2), (1,2), nothing
}

OP_TEST(InteractionWithOneGradient) {
  row("of the slots", {{"a", {4, 8}}, {"e", {4, 3, 8}}});
  rounding(Rounding::sum);
  forward([](Rig& t) { ops::interaction(t.ctx, t["a"], t["e"], t.out("y", {4, 15})); });
  backward([](Rig& t) { ops::interaction_backward(t.ctx, t["a"], t["e"], t.d("y"), std::nullopt, t.d("e")); });
}

}  // namespace
}  // namespace hctr::test
