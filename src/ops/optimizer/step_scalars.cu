#include "ops/optimizer/step_scalars.h"

#include "core/device/launch.cuh"

namespace hctr::ops {
namespace {

__global__ void set_step_kernel(StepState* state, StepInput input) {
  hctr::cuda::start_early();
  state->learning_rate = input.rate ? *input.rate : input.learning_rate;
  state->loss_scale = input.loss_scale;
  state->skip = input.skip && *input.skip != 0 ? 1 : 0;
}

__global__ void count_step_kernel(StepState* state) {
  hctr::cuda::start_early();
  ++state->step;
  if (!state->skip) ++state->updates;
  state->skip = 0;
}

constexpr hctr::cuda::Grid kOneThread{.blocks = 1, .threads = 1, .early = true};

}  // namespace

void cuda::set_step(Context& ctx, StepState* state, StepInput input) {
  hctr::cuda::launch(ctx, "set_step", kOneThread, set_step_kernel, state, input);
}
void cuda::count_step(Context& ctx, StepState* state) {
  hctr::cuda::launch(ctx, "count_step", kOneThread, count_step_kernel, state);
}

}  // namespace hctr::ops
