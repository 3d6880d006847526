// Helpers for kernels that apply update rules.
#pragma once

#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// Returns the step's scalars. The scalars need powers in double, so only one thread of the block computes them. To be
/// called once from every thread of the block.
template <class Rule>
__device__ UpdateScalars block_scalars(const Optimizer& optimizer, const StepState* state) {
  __shared__ UpdateScalars scalars;
  if (threadIdx.x == 0) scalars = Rule::scalars(optimizer, *state);
  __syncthreads();
  return scalars;
}

/// Records an update whose result is infinite or NaN. To be called after each updated vector. A flag kept until the end
/// would cost registers, and thus occupancy, in kernels bound by memory latency.
__device__ inline void report_spoiled(bool finite, const StepState* state) {
  if (!finite && state->spoiled) *state->spoiled = 1;  // a benign race, because every thread writes the same value
}

}  // namespace hctr::ops
