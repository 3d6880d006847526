// The kernel that records the loss. One thread writes to host memory directly; in a recorded step, the write costs no
// more than a copy.
#include "ops/loss/loss_record.h"

#include "ops/common/element_loops.cuh"
#include "ops/loss/loss_record_rules.h"

namespace hctr::ops {
namespace {

__global__ void record_loss_kernel(const float* loss, const StepState* state, const int32_t* spoiled, LossRecord* total,
                                   LossRecord* seen, StepState* stop, const LossScale* scale) {
  cuda::start_early();
  LossRecord now = *total;
  add_to_record(*loss, *state, *spoiled != 0, now, stop, scale);
  *total = now;
  *seen = now;
}

}  // namespace

void cuda::record_loss(Context& ctx, Tensor loss, const int32_t* spoiled, LossRecord* total, LossRecord* seen,
                       StepState* stop, const LossScale* scale) {
  launch(ctx, "record_loss", early({1, 1}), record_loss_kernel, static_cast<const float*>(loss.data<float>()),
         ctx.state(), spoiled, total, seen, stop, scale);
}

}  // namespace hctr::ops
