// Shared by the kernels that apply update rules.
#pragma once

#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// The step's scalars. They need powers in double, so one thread of the block computes them. Every thread of the block
/// calls this once.
template <class Rule>
__device__ UpdateScalars block_scalars(const Optimizer& optimizer, const StepState* state) {
  __shared__ UpdateScalars scalars;
  if (threadIdx.x == 0) scalars = Rule::scalars(optimizer, *state);
  __syncthreads();
  return scalars;
}

/// Records an update that made a number infinite or NaN. Threads call it for each updated vector: keeping a flag until
/// their end would cost registers, and so threads, in kernels that wait for memory.
__device__ inline void report_spoiled(bool finite, const StepState* state) {
  if (!finite && state->spoiled) *state->spoiled = 1;  // all threads write the same
}

}  // namespace hctr::ops
