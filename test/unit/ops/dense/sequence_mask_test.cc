#include "ops/dense/sequence_mask.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(SequenceMask) {
  row("typical", {{"from", {9, 1}, 0, 6}, {"to", {9, 1}, 0, 7}});
  row("longer than the mask", {{"from", {4, 1}, 3, 30}, {"to", {4, 1}, 3, 30}});
  row("no rows", {{"from", {0, 1}}, {"to", {0, 1}}});
  rounding(Rounding::none);
  forward([](Rig& t) { ops::sequence_mask(t.ctx, t["from"], t["to"], t.out("mask", {t["from"].rows(), 1, 5, 7})); });
  expected([](const auto& t) {
    const std::vector<double> from = t["from"], to = t["to"];
    std::vector<double> mask;
    for (size_t b = 0; b < from.size(); ++b)
      for (int i = 0; i < 5; ++i)
        for (int j = 0; j < 7; ++j) mask.push_back(i < from[b] && j < to[b] ? 1 : 0);
    t.expect("mask", mask);
  });
}

}  // namespace
}  // namespace hctr::test
