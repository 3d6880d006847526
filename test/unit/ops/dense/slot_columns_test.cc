#include "ops/dense/slot_columns.h"

#include <gtest/gtest.h>

#include "support/op_test.h"

namespace hctr::test {
namespace {

/// Reference: y_i[b, s w_i + k] from x [batch * slots, sum of w_i].
std::vector<double> columns_of_slots(const std::vector<double>& x, size_t batch, size_t slots, size_t width,
                                     size_t first, size_t of_slot) {
  std::vector<double> y;
  for (size_t b = 0; b < batch; ++b)
    for (size_t s = 0; s < slots; ++s)
      for (size_t k = 0; k < of_slot; ++k) y.push_back(x[(b * slots + s) * width + first + k]);
  return y;
}

void slot_cases(auto& test, int64_t slots, const std::vector<int64_t>& widths, int64_t batch = 67) {
  int64_t width = 0;
  for (const int64_t each : widths) width += each;
  test.row("typical", {{"x", {batch * slots, width}}});
  test.row("one sample", {{"x", {slots, width}}});
  test.row("no samples", {{"x", {0, width}}});
  test.forward([=](Rig& t) {
    std::vector<Tensor> y;
    for (size_t i = 0; i < widths.size(); ++i)
      y.push_back(t.out(cat("y", i), {t["x"].dim(0) / slots, slots * widths[i]}));
    ops::split_slots(t.ctx, t["x"], slots, y);
  });
  test.backward([=](Rig& t) {
    std::vector<Tensor> d_y;
    for (size_t i = 0; i < widths.size(); ++i) d_y.push_back(t.d(cat("y", i)));
    ops::join_slots(t.ctx, d_y, slots, t.d("x"));
  });
  test.expected([=](const auto& t) {
    size_t first = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      const auto of_slot = static_cast<size_t>(widths[i]), all = static_cast<size_t>(slots);
      t.expect(cat("y", i),
               columns_of_slots(t["x"], t.size("x", 0) / all, all, static_cast<size_t>(width), first, of_slot));
      first += of_slot;
    }
  });
}

OP_TEST(SlotColumns) { slot_cases(*this, 26, {10, 1}, 21); }
OP_TEST(SlotColumnsOfPacks) { slot_cases(*this, 4, {8, 16, 8}); }
OP_TEST(SlotColumnsOfOneSlot) { slot_cases(*this, 1, {3, 5}); }
OP_TEST(SlotColumnsInOnePart) { slot_cases(*this, 3, {7}); }
/// The first test has more parts than one kernel accepts. The second needs more shared memory than one block has.
OP_TEST(SlotColumnsOfManyParts) { slot_cases(*this, 2, {1, 2, 3, 4, 5}); }
OP_TEST(SlotColumnsOfWideSlots) { slot_cases(*this, 20, {60, 61}, 3); }

}  // namespace
}  // namespace hctr::test
