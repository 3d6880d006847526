#include "ops/gemm/bias_gradient.h"

#include "ops/gemm/bias_gradient.cuh"

namespace hctr::ops {
namespace {

struct ReluRule {
  static constexpr bool kFromEnd = false;
  float factor;
  __device__ float operator()(float y, float d_y) const { return relu_gradient(factor, y, d_y); }
};

}  // namespace

void cuda::bias_gradient(Context& ctx, Tensor d_z, Tensor d_bias, Tensor scratch) {
  dispatch_float(d_z.dtype(), [&]<class T>() {
    launch_bias_gradient<T>(ctx, "bias_gradient", AsItIs{}, true, d_z, d_z, d_z, d_bias, scratch);
  });
}

void cuda::relu_bias_gradient(Context& ctx, float factor, Tensor y, Tensor d_y, Tensor d_z, Tensor d_bias,
                              Tensor scratch) {
  dispatch_float(d_y.dtype(), [&]<class T>() {
    launch_bias_gradient<T>(ctx, "relu_bias_gradient", ReluRule{factor}, true, y, d_y, d_z, d_bias, scratch);
  });
}

}  // namespace hctr::ops
