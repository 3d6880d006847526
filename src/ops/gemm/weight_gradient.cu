// Dispatches wgrads. For small batches, Hopper computes the wgrads of all layers in one kernel. Other devices, and
// unsupported layers, use the library's GEMMs on a side stream. For large batches, GEMMs run sequentially.
#include "ops/gemm/weight_gradient.h"

#include "core/device/launch.cuh"
#include "ops/gemm/f32_product.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

void cuda::choose_weight_gradient_run(Context& ctx, Tensor x, Tensor d_y, Tensor d_w, WeightGradientRun& run) {
  const RuntimeOptions& options = ctx.runtime().options();
  const auto has_memory = [&] {
    if (size_of(x.dtype()) == 2) return true;  // two-byte types need no exchange memory
    return options.tf32 && !options.tf32x3 ? hopper::runs_weight_gradients_tf32(ctx) : hopper::runs_f32_products(ctx);
  };
  const bool merges = ctx.last_launches() && ctx.last_launches()->collects() && has_memory();
  run = weight_gradient_run(*gpu_traits(ctx.device()), options.tf32x3, merges, x, d_y, d_w);
}

void cuda::weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w, SearchedOperands searched) {
  WeightGradientRun run{};
  cuda::choose_weight_gradient_run(ctx, x, d_y, d_w, run);
  if (run != WeightGradientRun::together) return ops::matmul(ctx, x, Transpose::yes, d_y, Transpose::no, d_w);
  Lockstep::LateResult late{d_w, x.dtype(), {}};
  if (!searched.x) late.unsearched.push_back(x);
  if (!searched.d_y) late.unsearched.push_back(d_y);
  Context own = ctx.last_launches()->next_late(std::move(late));
  if (size_of(x.dtype()) == 2) return hopper::add_weight_gradient(own, x, d_y, d_w);
  if (ctx.runtime().options().tf32) return hopper::add_weight_gradient_tf32(own, x, d_y, d_w);
  hopper::add_weight_gradient_f32(own, x, d_y, d_w);
}

}  // namespace hctr::ops
