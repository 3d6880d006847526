// Shared by the kernels that apply update rules.
#pragma once

#include "ops/optimizer_rules.h"

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

}  // namespace hctr::ops
