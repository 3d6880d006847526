#include "ops/embedding/bag_lengths.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

OP_TEST(BagLengths) {
  // Three slots. The offsets are not monotonic, so a wrong pair of offsets gives a wrong length.
  row("typical", {{"offsets", {3 * 70 + 1}, 0, 100, Type::i32}});
  row("one sample", {{"offsets", {3 + 1}, 0, 100, Type::i32}});
  row("no samples", {{"offsets", {1}, 0, 100, Type::i32}});
  rounding(Rounding::none);
  forward([](Rig& t) {
    const Tensor offsets = t["offsets"];
    ops::bag_lengths(t.ctx, offsets.data<const int32_t>(), t.out("y", {(offsets.rows() - 1) / 3, 3}));
  });
  expected([](const auto& t) {
    const std::vector<double> offsets = t["offsets"];
    const size_t samples = offsets.size() / 3;
    std::vector<double> y;
    for (size_t b = 0; b < samples; ++b)
      for (size_t s = 0; s < 3; ++s) y.push_back(offsets[s * samples + b + 1] - offsets[s * samples + b]);
    t.expect("y", y);
  });
}

}  // namespace
}  // namespace hctr::test
