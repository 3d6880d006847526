// Chooses: one kernel on Hopper for types of two bytes and TF32, else the operators one after the other.
#include "ops/gradient_through_relu.h"

#include "device/launch.cuh"
#include "device/profiler.h"
#include "ops/bias_gradient.h"
#include "ops/fused_product.h"
#include "ops/linear.h"
#include "ops/part_totals.cuh"

namespace hctr::ops {

void cuda::gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z,
                                 Tensor d_bias, Tensor scratch) {
  if (hopper::takes_fused_product(ctx, {d_out, w, y}, d_z)) {
    count_flops(ctx, 2.0 * static_cast<double>(d_out.elements()) * static_cast<double>(w.dim(0)));
    float* sums = scratch.data<float>();
    hopper::gradient_through_relu(ctx, d_out, w, factor, y, d_z, sums);
    return dispatch_float(d_bias.dtype(),
                          [&]<class Out>() { add_bias_parts<Out>(ctx, sums, (d_z.dim(0) + 63) / 64, d_bias); });
  }
  ops::matmul(ctx, d_out, Transpose::no, w, Transpose::yes, d_z);
  ops::relu_bias_gradient(ctx, factor, y, d_z, d_z, d_bias, scratch);
}

}  // namespace hctr::ops
