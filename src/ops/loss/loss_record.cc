#include "ops/loss/loss_record.h"

#include "ops/common/checks.h"
#include "ops/loss/loss_record_rules.h"

namespace hctr::ops {

void record_loss(Context& ctx, Tensor loss, const int32_t* spoiled, LossRecord* total, LossRecord* seen,
                 StepState* stop, const LossScale* scale) {
  expect_on("record_loss loss", ctx.device(), loss);
  expect_shape("record_loss loss", loss, {1});
  HCTR_EXPECT(ctx.state(), "record_loss() needs a step state");
  HCTR_EXPECT(!stop || stop == ctx.state(), "record_loss(): the step state belongs to another step");
  HCTR_ON_DEVICE(ctx, record_loss(ctx, loss, spoiled, total, seen, stop, scale));
}

void cpu::record_loss(Context& ctx, Tensor loss, const int32_t* spoiled, LossRecord* total, LossRecord* seen,
                      StepState* stop, const LossScale* scale) {
  add_to_record(*loss.data<float>(), *ctx.state(), *spoiled != 0, *total, stop, scale);
  *seen = *total;
}

}  // namespace hctr::ops
