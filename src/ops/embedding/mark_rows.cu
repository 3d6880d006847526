// Kernels that mark and group rows: CUB's prefix sum computes the positions of marked rows; the other kernels use one
// thread per row or key.
#include "core/device/copy_bytes.h"
#include "core/device/launch.cuh"
#include "ops/embedding/mark_rows.h"
#include "ops/embedding/prefix_sum.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

__global__ void mark_batch_kernel(RowGroups groups, int32_t* marks) {
  const int64_t runs = groups.counts->runs;
  for (int64_t run = thread_index(); run < runs; run += thread_count()) marks[groups.rows[groups.run_begin[run]]] = 1;
}

/// Requires marks[0] = 0, so that the number of marked rows is sums[rows] + marks[rows].
__global__ void group_marked_kernel(const int32_t* marks, const int32_t* sums, int64_t rows, RowGroups groups) {
  const int32_t marked = sums[rows] + marks[rows];
  const int64_t padding = rows - marked;
  for (int64_t i = thread_index(); i < rows; i += thread_count()) {
    const int64_t row = i + 1;
    if (i < padding) groups.rows[i] = groups.bags[i] = 0;
    if (i == 0) *groups.counts = {marked, 0, 0};
    if (!marks[row]) continue;
    const int64_t at = padding + sums[row];
    groups.run_begin[sums[row]] = static_cast<int32_t>(at);
    groups.rows[at] = groups.bags[at] = static_cast<int32_t>(row);
  }
}

__global__ void note_seen_kernel(const uint32_t* rows, const int32_t* marks, int32_t* seen, uint8_t* touched,
                                 const StepState* state) {
  for (int64_t row = 1 + thread_index(), last = *rows; row <= last; row += thread_count()) {
    const int32_t known = seen[row] | marks[row];
    seen[row] = known;
    if (touched && !known && !state->skip) touched[row] = 1;
  }
}

__global__ void hide_unseen_kernel(const int32_t* seen, int32_t* rows, int64_t count) {
  for (int64_t p = thread_index(); p < count; p += thread_count())
    if (!seen[rows[p]]) rows[p] = 0;
}

}  // namespace

namespace cuda {

size_t group_marked_scratch_bytes(int64_t rows) { return padded_bytes(rows + 1) + prefix_sums_bytes(rows + 1); }

void mark_batch(Context& ctx, RowGroups groups, int64_t key_capacity, Tensor marks) {
  zero(ctx.stream(), marks);
  launch(ctx, "mark_batch", grid_for(key_capacity), mark_batch_kernel, groups, marks.data<int32_t>());
}

void group_marked(Context& ctx, Tensor marks, RowGroups groups, std::byte* scratch) {
  const int64_t rows = marks.elements() - 1;
  const auto* mark = marks.data<const int32_t>();
  auto* sums = reinterpret_cast<int32_t*>(scratch);
  prefix_sums(ctx, mark, sums, rows + 1, scratch + padded_bytes(rows + 1));
  launch(ctx, "group_marked", grid_for(rows), group_marked_kernel, mark, sums, rows, groups);
}

void note_seen(Context& ctx, const uint32_t* rows, Tensor marks, Tensor seen, uint8_t* touched) {
  launch(ctx, "note_seen", grid_for(marks.elements()), note_seen_kernel, rows, marks.data<const int32_t>(),
         seen.data<int32_t>(), touched, ctx.state());
}

void hide_unseen(Context& ctx, Tensor seen, int32_t* rows, int64_t count) {
  launch(ctx, "hide_unseen", grid_for(count), hide_unseen_kernel, seen.data<const int32_t>(), rows, count);
}

}  // namespace cuda
}  // namespace hctr::ops
