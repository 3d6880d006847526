#include "ops/common/loss_scale.h"

#include <atomic>
#include <cmath>

#include "ops/common/checks.h"
#include "ops/common/element_loops.h"

namespace hctr::ops {

void begin_scaled_step(Context& ctx, const LossScale* scale, StepState* state, Tensor overflow) {
  expect_shape("begin_scaled_step overflow", overflow, {1});
  HCTR_EXPECT(state && state == ctx.state(), "begin_scaled_step(): the step state belongs to another step");
  HCTR_ON_DEVICE(ctx, begin_scaled_step(ctx, scale, state, overflow));
}

void find_overflow(Context& ctx, Tensor g, OverflowSearch search) {
  expect_on("find_overflow g", ctx.device(), g);
  if (!search.found) return;
  HCTR_ON_DEVICE(ctx, find_overflow(ctx, g, search));
}

void end_scaled_step(Context& ctx, LossScaleRule rule, Tensor overflow, LossScale* scale, StepState* state) {
  expect_shape("end_scaled_step overflow", overflow, {1});
  HCTR_EXPECT(state && state == ctx.state(), "end_scaled_step(): the step state belongs to another step");
  HCTR_ON_DEVICE(ctx, end_scaled_step(ctx, rule, overflow, scale, state));
}

void end_scaled_step_after_search(Context& ctx, const std::vector<Tensor>& all, OverflowSearch search,
                                  LossScaleRule rule, Tensor overflow, Tensor blocks_done, LossScale* scale,
                                  StepState* state) {
  for (const Tensor& g : all) expect_on("end_scaled_step_after_search", ctx.device(), g);
  expect_shape("end_scaled_step_after_search overflow", overflow, {1});
  expect_tensor("end_scaled_step_after_search blocks_done", ctx.device(), blocks_done, {1}, DType::i32);
  HCTR_EXPECT(search.found == overflow.data<float>(),
              "end_scaled_step_after_search(): the overflow search belongs "
              "to another step");
  HCTR_EXPECT(state && state == ctx.state(), "end_scaled_step_after_search(): the step state belongs to another step");
  HCTR_ON_DEVICE(ctx, end_scaled_step_after_search(ctx, all, search, rule, overflow, blocks_done, scale, state));
}

void cpu::begin_scaled_step(Context&, const LossScale* scale, StepState* state, Tensor overflow) {
  state->loss_scale = scale->scale;
  state->updates = state->updates_before + state->step - scale->skipped;
  state->skip = 0;
  *overflow.data<float>() = 0;
}

void cpu::find_overflow(Context& ctx, Tensor g, OverflowSearch search) {
  const Extent extent = extent_of({g});
  std::atomic<bool> found = false;
  dispatch_real(g.dtype(), [&]<class T>() {
    const View<const T, 2> rows = rows_of<const T>(g, extent);
    for_pieces(ctx, extent, [&](int64_t row, int64_t begin, int64_t end) {
      bool all_fit = true;
      for (int64_t i = begin; i < end; ++i)
        all_fit = all_fit && std::abs(static_cast<Acc<T>>(rows.row(row)[i])) <= static_cast<Acc<T>>(search.largest);
      if (!all_fit) found = true;  // the comparisons are false for NaN
    });
  });
  if (found) *search.found = 1;
}

void cpu::end_scaled_step_after_search(Context& ctx, const std::vector<Tensor>& all, OverflowSearch search,
                                       LossScaleRule rule, Tensor overflow, Tensor, LossScale* scale,
                                       StepState* state) {
  for (const Tensor& g : all) ops::find_overflow(ctx, g, search);
  ops::end_scaled_step(ctx, rule, overflow, scale, state);
}

void cpu::end_scaled_step(Context&, LossScaleRule rule, Tensor overflow, LossScale* scale, StepState* state) {
  rule.finish(*overflow.data<float>() > 0, *scale, *state);
}

}  // namespace hctr::ops
