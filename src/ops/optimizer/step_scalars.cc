#include "ops/optimizer/step_scalars.h"

namespace hctr::ops {

void set_step(Context& ctx, StepState* state, StepInput input) { HCTR_ON_DEVICE(ctx, set_step(ctx, state, input)); }
void count_step(Context& ctx, StepState* state) { HCTR_ON_DEVICE(ctx, count_step(ctx, state)); }

namespace cpu {

void set_step(Context&, StepState* state, StepInput input) {
  state->learning_rate = input.rate ? *input.rate : input.learning_rate;
  state->loss_scale = input.loss_scale;
  state->skip = input.skip && *input.skip != 0 ? 1 : 0;
}

void count_step(Context&, StepState* state) {
  ++state->step;
  if (!state->skip) ++state->updates;
  state->skip = 0;
}

}  // namespace cpu
}  // namespace hctr::ops
