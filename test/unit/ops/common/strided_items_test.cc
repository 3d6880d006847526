#include "ops/common/strided_items.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/message_of.h"
#include "support/op_test.h"

namespace hctr::test {
namespace {

using ops::StridedItems;

/// Selects slots 3, 0 and 3 of 5 slots.
const std::vector<int64_t> kSome = {3, 0, 3};

OP_TEST(GatherSlots) {
  row("typical", {{"x", {64, 5, 11}}});
  row("packs", {{"x", {6, 5, 16}}});
  row("one column", {{"x", {6, 5, 1}}});
  row("no rows", {{"x", {0, 5, 3}}});
  large("large", {{"x", {90000, 5, 33}}});
  forward([](Rig& t) {
    ops::gather(t.ctx, StridedItems::slots_of(t["x"], 5), kSome,
                StridedItems::slots_of(t.out("y", {t["x"].dim(0), 3, t["x"].dim(2)}), 3));
  });
  backward([](Rig& t) {
    ops::gather_backward(t.ctx, StridedItems::slots_of(t.d("y"), 3), kSome, StridedItems::slots_of(t.d("x"), 5));
  });
  expected([](const auto& t) {
    const std::vector<double> x = t["x"], d_y = t["d_y"];
    if (x.empty()) return;
    const size_t rows = t.size("x", 0), width = t.size("x", 2);
    std::vector<double> y, d_x(x.size(), 0.0);
    for (size_t b = 0; b < rows; ++b)
      for (const int64_t s : kSome)
        for (size_t k = 0; k < width; ++k) {
          const size_t from = (b * 5 + static_cast<size_t>(s)) * width + k;
          d_x[from] += d_y[y.size()];
          y.push_back(x[from]);
        }
    t.expect("y", y);
    t.expect("d_x", d_x);
  });
}

/// More indices than one launch accepts, and one index whose data needs more than one launch.
std::vector<int64_t> many_indices() {
  std::vector<int64_t> indices(1200, 1);
  for (int64_t i = 0; i < 700; ++i) indices.push_back(i * 7 % 900);
  return indices;
}

OP_TEST(GatherManyRows) {
  row("typical", {{"x", {900, 3}}});
  rounding(Rounding::sum);
  f32_only();
  forward([](Rig& t) {
    const auto indices = many_indices();
    const auto n = static_cast<int64_t>(indices.size());
    ops::gather(t.ctx, StridedItems::runs_of_rows(t["x"], 900), indices,
                StridedItems::runs_of_rows(t.out("y", {n, 3}), n));
  });
  backward([](Rig& t) {
    const auto indices = many_indices();
    ops::gather_backward(t.ctx, StridedItems::runs_of_rows(t.d("y"), static_cast<int64_t>(indices.size())), indices,
                         StridedItems::runs_of_rows(t.d("x"), 900));
  });
}

OP_TEST(CopyItems) {
  row("typical", {{"x", {12, 7}}});
  row("packs", {{"x", {12, 32}}});
  rounding(Rounding::none);
  forward([](Rig& t) {  // y: runs of 3 rows become slots; z: each row is repeated twice
    const int64_t width = t["x"].dim(1);
    ops::copy_items(t.ctx, StridedItems::runs_of_rows(t["x"], 3), StridedItems::slots_of(t.out("y", {4, 3, width}), 3));
    ops::copy_items(t.ctx, StridedItems::runs_of_rows(t["x"], 1).repeated(2),
                    StridedItems::runs_of_rows(t.out("z", {24, width}), 2));
  });
  expected([](const auto& t) {
    t.expect("y", t["x"]);
    const std::vector<double> x = t["x"];
    const size_t width = x.size() / 12;
    std::vector<double> z;
    for (size_t row = 0; row < 24; ++row)
      z.insert(z.end(), x.begin() + static_cast<long>(row / 2 * width),
               x.begin() + static_cast<long>((row / 2 + 1) * width));
    t.expect("z", z);
  });
}

TEST(StridedItems, RefusesAnIndexOutOfRange) {
  Rig t({{}, DType::f32, DType::f32, {{"dense"}}, 1, {{"x", {2, 3, 4}}}, {}});
  EXPECT_EQ(message_of(Kind::bug,
                       [&] {
                         ops::gather(t.ctx, StridedItems::slots_of(t["x"], 3), {3},
                                     StridedItems::slots_of(t.out("y", {2, 4}), 1));
                       })
                .substr(0, 25),
            "gather: index 3 of 3 item");
}

}  // namespace
}  // namespace hctr::test
