// Small batches: on Hopper, in types of two bytes and TF32, one kernel for the products of all layers; else the
// library's products on a stream of their own. Large batches: one product after the other.
#include "ops/weight_gradient.h"

#include "device/launch.cuh"
#include "device/tensor_map.cuh"
#include "ops/linear.h"

namespace hctr::ops {

void cuda::choose_weight_gradient_run(Context& ctx, Tensor x, Tensor d_y, Tensor d_w, WeightGradientRun& run) {
  using hctr::cuda::takes_tensor_map;
  run = WeightGradientRun::in_order;
  if (!leaves_multiprocessors_idle(x.dim(0), x.dim(1), d_y.dim(1), hctr::cuda::multiprocessors())) return;
  const RuntimeOptions& options = ctx.runtime().options();
  const bool collects = ctx.last_launches() && ctx.last_launches()->collects();
  const bool tensor_cores = size_of(x.dtype()) == 2 || (options.tf32 && !options.tf32x3);
  if (collects && hctr::cuda::compute_capability() == 90 && tensor_cores && d_w.dtype() == DType::f32 &&
      takes_tensor_map(x) && takes_tensor_map(d_y))
    run = WeightGradientRun::together;
  else if (!options.tf32x3)  // its products share the memory of split operands
    run = WeightGradientRun::apart;
}

void cuda::weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  WeightGradientRun run{};
  cuda::choose_weight_gradient_run(ctx, x, d_y, d_w, run);
  if (run == WeightGradientRun::together)
    return size_of(x.dtype()) == 2 ? hopper::add_weight_gradient(ctx, x, d_y, d_w)
                                   : hopper::add_weight_gradient_tf32(ctx, x, d_y, d_w);
  ops::matmul(ctx, x, Transpose::yes, d_y, Transpose::no, d_w);
}

}  // namespace hctr::ops
