#include "ops/embedding/mark_rows.h"

#include <algorithm>

namespace hctr::ops {

void mark_batch(Context& ctx, RowGroups groups, int64_t key_capacity, Tensor marks) {
  expect_on("mark_batch marks", ctx.device(), marks);
  HCTR_ON_DEVICE(ctx, mark_batch(ctx, groups, key_capacity, marks));
}

void group_marked(Context& ctx, Tensor marks, RowGroups groups, std::byte* scratch) {
  expect_on("group_marked marks", ctx.device(), marks);
  HCTR_ON_DEVICE(ctx, group_marked(ctx, marks, groups, scratch));
}

size_t group_marked_scratch_bytes(Device device, int64_t rows) {
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::group_marked_scratch_bytes(rows);
  }
  return 0;
}

void note_seen(Context& ctx, const uint32_t* rows, Tensor marks, Tensor seen, uint8_t* touched) {
  expect_shape("note_seen seen", seen, {marks.elements()});
  HCTR_EXPECT(ctx.state(), "note_seen() needs a step state");
  HCTR_ON_DEVICE(ctx, note_seen(ctx, rows, marks, seen, touched));
}

void hide_unseen(Context& ctx, Tensor seen, int32_t* rows, int64_t count) {
  expect_on("hide_unseen seen", ctx.device(), seen);
  HCTR_ON_DEVICE(ctx, hide_unseen(ctx, seen, rows, count));
}

namespace cpu {

void mark_batch(Context&, RowGroups groups, int64_t, Tensor marks) {
  auto* mark = marks.data<int32_t>();
  std::fill_n(mark, marks.elements(), 0);
  for (int32_t run = 0; run < groups.counts->runs; ++run) mark[groups.rows[groups.run_begin[run]]] = 1;
}

void group_marked(Context&, Tensor marks, RowGroups groups, std::byte*) {
  const auto* mark = marks.data<const int32_t>();
  const auto rows = static_cast<int32_t>(marks.elements()) - 1;
  const auto marked = static_cast<int32_t>(std::count(mark + 1, mark + 1 + rows, 1));
  int32_t at = rows - marked, run = 0;
  std::fill_n(groups.rows, at, 0);
  std::fill_n(groups.bags, at, 0);
  for (int32_t row = 1; row <= rows; ++row) {
    if (!mark[row]) continue;
    groups.run_begin[run++] = at;
    groups.rows[at] = groups.bags[at] = row;
    ++at;
  }
  *groups.counts = {marked, 0, 0};
}

void note_seen(Context& ctx, const uint32_t* rows, Tensor marks, Tensor seen, uint8_t* touched) {
  const auto* mark = marks.data<const int32_t>();
  auto* known = seen.data<int32_t>();
  for (int64_t row = 1; row <= *rows; ++row) {
    known[row] |= mark[row];
    if (touched && !known[row] && !ctx.state()->skip) touched[row] = 1;
  }
}

void hide_unseen(Context&, Tensor seen, int32_t* rows, int64_t count) {
  const auto* known = seen.data<const int32_t>();
  for (int64_t p = 0; p < count; ++p)
    if (!known[rows[p]]) rows[p] = 0;
}

}  // namespace cpu
}  // namespace hctr::ops
