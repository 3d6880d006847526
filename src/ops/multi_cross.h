// The cross network of DCN: vector form here, matrix form from cross_gate and matrix products.
#pragma once

#include <optional>
#include <vector>

#include "device/op.h"

namespace hctr::ops {

inline constexpr size_t kMostCrossLayers = 64;

/// The weights of all layers, in order: w_l and b_l, [1, dim] each. Gradients: the same, f32.
struct CrossWeights {
  std::vector<Tensor> w, b;
};

/// y_0 = x; y_{l+1} = x * <y_l, w_l> + y_l + b_l, for every row; y is the last. Everything between is kept in f32.
/// Shapes: x and y [batch, dim]. Dtypes: f32 f16 bf16, alike. `scratch` is kept for backward.
/// Source: R. Wang et al., "Deep & Cross Network for Ad Click Predictions", ADKDD 2017, eq. 3.
HCTR_OP(void multi_cross(Context&, Tensor x, CrossWeights weights, Tensor scratch, Tensor y))
/// Gradients of all weights, and of x when dx is there. Overwrites them.
HCTR_OP(void multi_cross_backward(Context&, Tensor x, CrossWeights weights, Tensor dy, Tensor scratch,
                                  std::optional<Tensor> dx, CrossWeights d_weights))
TensorSpec multi_cross_scratch(int64_t batch, int64_t dim, int64_t layers);

/// y = x * t + skip, element by element: the last step of a layer in matrix form.
HCTR_OP(void cross_gate(Context&, Tensor x, Tensor t, Tensor skip, Tensor y))
/// dt = dy * x; total = dy * t, added to what `total` (f32) holds when `onto`.
HCTR_OP(void cross_gate_backward(Context&, Tensor x, Tensor t, Tensor dy, bool onto, Tensor dt, Tensor total))
/// y = a + b, where b is f32 and a and y of any type.
HCTR_OP(void add_f32(Context&, Tensor a, Tensor b, Tensor y))

}  // namespace hctr::ops
