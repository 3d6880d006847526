// The kernel that updates FP8 scales: one thread per scale, because a model has only a few dozen.
#include "ops/gemm/fp8_scaling.h"

#include "core/device/launch.cuh"

namespace hctr::ops {
namespace {

__global__ void finish_fp8_scales_kernel(const StepState* state, float* amax, int64_t count, Fp8Scale* scales) {
  const bool skip = state && state->skip;
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count()) {
    if (!skip) scales[i].finish(amax[i]);
    amax[i] = 0;
  }
}

}  // namespace

void cuda::finish_fp8_scales(Context& ctx, Tensor amax, Fp8Scale* scales) {
  hctr::cuda::launch(ctx, "finish_fp8_scales", hctr::cuda::grid_for(amax.elements(), 128), finish_fp8_scales_kernel,
                     ctx.state(), amax.data<float>(), amax.elements(), scales);
}

}  // namespace hctr::ops
