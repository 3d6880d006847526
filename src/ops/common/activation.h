// Element-wise activation functions and their gradients.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// An activation function and its parameter `alpha`:
///   relu        max(x, 0); no gradient at 0
///   elu         x < 0 ? alpha * (exp(x) - 1) : x          Clevert et al., ICLR 2016
///   leaky_relu  x < 0 ? alpha * x : x                     Maas et al., ICML 2013
///   sigmoid     1 / (1 + exp(-x))
///   tanh        tanh(x)
///   gelu        x * Phi(x), Phi the normal distribution   Hendrycks and Gimpel, arXiv 1606.08415
///   silu        x * sigmoid(x)                            Elfwing et al., 2018
struct Activation {
  enum class Kind { relu, elu, leaky_relu, sigmoid, tanh, gelu, silu };
  Kind kind = Kind::relu;
  float alpha = 0;
};

/// y = f(x), element by element. Shapes: x and y equal. Dtypes: f32 f16 bf16. y may be x.
HCTR_OP(void activate(Context&, Activation, Tensor x, Tensor y))
/// dx = f'(x) * dy. Overwrites dx; dx may be dy.
HCTR_OP(void activate_backward(Context&, Activation, Tensor x, Tensor dy, Tensor dx))

}  // namespace hctr::ops
