// Dispatches gradient_through_relu(): one fused kernel on Hopper, else separate operators.
#include "ops/gemm/gradient_through_relu.h"

#include "core/device/launch.cuh"
#include "core/device/profiler.h"
#include "ops/common/part_totals.cuh"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/f32_product.h"
#include "ops/gemm/fused_product.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {

void cuda::gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z,
                                 Tensor d_bias, Tensor scratch, OverflowSearch search) {
  const bool of_f32 =
      hopper::takes_f32_product(ctx, F32Use::ended, {d_out, w, y, d_z}, d_z.dim(0), d_z.dim(1), d_out.dim(1));
  const bool fused = of_f32 || hopper::takes_fused_product(ctx, {d_out, w, y}, d_z);
  const bool searches = search.found && fused && !of_f32 && hopper::searches_beside_product(y);
  if (search.found && !searches) cuda::find_overflow(ctx, y, search);
  if (fused) {
    count_flops(ctx, 2.0 * static_cast<double>(d_out.elements()) * static_cast<double>(w.dim(0)));
    float* sums = scratch.data<float>();
    int64_t of_rows = 64;
    if (of_f32)
      of_rows = hopper::f32_gradient_through_relu(ctx, d_out, w, factor, y, d_z, sums);
    else
      hopper::gradient_through_relu(ctx, d_out, w, factor, y, d_z, sums, searches ? search : OverflowSearch{});
    const int64_t parts = (d_z.dim(0) + of_rows - 1) / of_rows;
    return dispatch_float(d_bias.dtype(), [&]<class Out>() { add_bias_parts<Out>(ctx, sums, parts, d_bias); });
  }
  ops::matmul(ctx, d_out, Transpose::no, w, Transpose::yes, d_z);
  ops::relu_bias_gradient(ctx, factor, y, d_z, d_z, d_bias, scratch);
}

}  // namespace hctr::ops
