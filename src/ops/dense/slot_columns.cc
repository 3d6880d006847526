#include "ops/dense/slot_columns.h"

#include "ops/common/strided_items.h"

namespace hctr::ops {
namespace {

void expect_slots_of(const char* what, Context& ctx, const Tensor& x, int64_t slots, const std::vector<Tensor>& y) {
  expect_on(what, ctx.device(), x);
  HCTR_EXPECT(x.rank() == 2 && slots > 0 && x.dim(0) % slots == 0, what, " of ", to_string(x.shape()), " with ", slots,
              " slots");
  int64_t width = 0;
  for (const Tensor& part : y) {
    expect_alike(what, {x, part});
    HCTR_EXPECT(part.rank() == 2 && part.dim(0) * slots == x.dim(0) && part.dim(1) % slots == 0, what, ": columns ",
                to_string(part.shape()), " of ", to_string(x.shape()), " with ", slots, " slots");
    width += part.dim(1) / slots;
  }
  HCTR_EXPECT(width == x.dim(1), what, ": ", width, " columns of ", to_string(x.shape()));
}

}  // namespace

void split_slots(Context& ctx, Tensor x, int64_t slots, const std::vector<Tensor>& y) {
  expect_slots_of("split_slots", ctx, x, slots, y);
  if (x.elements() == 0) return;
  HCTR_ON_DEVICE(ctx, split_slots(ctx, x, slots, y));
}

void split_slots_by_part(Context& ctx, Tensor x, int64_t slots, const std::vector<Tensor>& y) {
  int64_t first = 0;
  for (const Tensor& part : y) {
    const int64_t end = first + part.dim(1) / slots;
    ops::copy_items(ctx, StridedItems::runs_of_rows(x, slots).columns(first, end), StridedItems::slots_of(part, slots));
    first = end;
  }
}

void cpu::split_slots(Context& ctx, Tensor x, int64_t slots, const std::vector<Tensor>& y) {
  split_slots_by_part(ctx, x, slots, y);
}

void join_slots(Context& ctx, const std::vector<Tensor>& y, int64_t slots, Tensor x) {
  expect_slots_of("join_slots", ctx, x, slots, y);
  if (x.elements() == 0) return;
  HCTR_ON_DEVICE(ctx, join_slots(ctx, y, slots, x));
}

void join_slots_by_part(Context& ctx, const std::vector<Tensor>& y, int64_t slots, Tensor x) {
  int64_t first = 0;
  for (const Tensor& part : y) {
    const int64_t end = first + part.dim(1) / slots;
    ops::copy_items(ctx, StridedItems::slots_of(part, slots), StridedItems::runs_of_rows(x, slots).columns(first, end));
    first = end;
  }
}

void cpu::join_slots(Context& ctx, const std::vector<Tensor>& y, int64_t slots, Tensor x) {
  join_slots_by_part(ctx, y, slots, x);
}

}  // namespace hctr::ops
