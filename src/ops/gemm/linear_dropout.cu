// Dispatches linear_relu_dropout(): one fused kernel on Hopper, else separate operators.
#include "ops/gemm/linear_dropout.h"

#include "core/device/profiler.h"
#include "ops/common/dropout.h"
#include "ops/gemm/f32_product.h"
#include "ops/gemm/fused_product.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/transposed_weights.cuh"

namespace hctr::ops {

void cuda::linear_relu_dropout(Context& ctx, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y,
                               std::optional<Tensor> transposed) {
  const bool f32 = y.dtype() == DType::f32;
  if (f32 ? (transposed || x.dim(0) >= kLeastRowsOfTransposed) && hopper::takes_fused_product(ctx, {x}, y)
          : hopper::takes_fused_product(ctx, {x, w}, y)) {
    count_flops(ctx, 2.0 * static_cast<double>(x.elements()) * static_cast<double>(w.dim(1)));
    const Tensor own = !f32 ? w : transposed ? *transposed : transposed_weights(ctx, w);
    return hopper::linear_relu_dropout(ctx, x, own, bias, rate, stream, y);
  }
  if (hopper::takes_f32_product(ctx, F32Use::ended, {x, w, y}, y.dim(0), y.dim(1), w.dim(0))) {
    count_flops(ctx, 2.0 * static_cast<double>(x.elements()) * static_cast<double>(w.dim(1)));
    return hopper::f32_linear_relu_dropout(ctx, x, w, bias, rate, stream, y);
  }
  ops::linear(ctx, x, w, bias, y, true, transposed);
  ops::dropout(ctx, rate, stream, y, y);
}

}  // namespace hctr::ops
