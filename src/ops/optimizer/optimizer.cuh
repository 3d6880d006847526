// Helpers for kernels that apply update rules.
#pragma once

#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops {

/// Returns the step's scalars. They need powers in double, so one thread of the block computes them. Every thread of
/// the block must call this once.
template <class Rule>
__device__ UpdateScalars block_scalars(const Optimizer& optimizer, const StepState* state) {
  __shared__ UpdateScalars scalars;
  if (threadIdx.x == 0) scalars = Rule::scalars(optimizer, *state);
  __syncthreads();
  return scalars;
}

/// Records an update whose result is infinite or NaN. Threads call it for each updated vector: keeping a flag until the
/// end would cost registers, and so occupancy, in kernels bound by memory latency.
__device__ inline void report_spoiled(bool finite, const StepState* state) {
  if (!finite && state->spoiled) *state->spoiled = 1;  // a benign race: every thread writes the same value
}

}  // namespace hctr::ops
