// Definitions shared by the implementations of ops/gemm/bias_gradient.h and by other operators that compute a bias
// gradient.
#pragma once

#include <cstdint>

#include "core/base/platform.h"
#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr::ops {

/// Maximum number of parts of the rows that CUDA sums separately; the partial sums are then added in order.
inline constexpr int64_t kMostRowParts = 512;

/// Maximum number of parts if each block of a larger kernel sums one part: 6 blocks on each of the 132 multiprocessors
/// of an H100. A constant, because sums must not depend on the device.
inline constexpr int64_t kMostBlockParts = 6 * 132;

/// Throws Error(bug) unless d_z, d_bias and `scratch` have valid shapes and dtypes for a bias gradient.
inline void expect_bias_gradient(const char* what, Context& ctx, const Tensor& d_z, const Tensor& d_bias,
                                 const Tensor& scratch) {
  expect_on(what, ctx.device(), d_bias);
  HCTR_EXPECT(d_z.rank() == 2, what, ": expected a matrix, found shape ", to_string(d_z.shape()));
  expect_shape(what, d_bias, {d_z.dim(1)});
  HCTR_EXPECT(d_bias.dtype() == d_z.dtype() || (d_bias.dtype() == DType::f32 && size_of(d_z.dtype()) == 2), what,
              " of ", name_of(d_z.dtype()), " as ", name_of(d_bias.dtype()));
  HCTR_EXPECT(scratch.elements() >= kMostRowParts * d_z.dim(1), what, " of ", d_z.dim(1),
              " columns needs more scratch memory");
}

template <class A>
HCTR_HD A relu_gradient(A factor, A y, A d_y) {
  return y > 0 ? factor * d_y : A(0);
}

}  // namespace hctr::ops
