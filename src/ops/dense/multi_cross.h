// The DCN cross network in vector form. ops/dense/cross_gate.h has the operators of the matrix form.
#pragma once

#include <optional>
#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

inline constexpr size_t kMostCrossLayers = 64;

/// The weights w_l and b_l of all layers in order, [1, dim] each. Wgrads have the same shapes, in f32.
struct CrossWeights {
  std::vector<Tensor> w, b;
};

/// y_0 = x; y_{l+1} = x * <y_l, w_l> + y_l + b_l, for every row; y is the last y_l. Intermediate values are f32.
/// Shapes: x and y [batch, dim]. Dtypes: f32 f16 bf16, equal. Backward reads `scratch`. Source: R. Wang et al., "Deep &
/// Cross Network for Ad Click Predictions", ADKDD 2017, eq. 3.
HCTR_OP(void multi_cross(Context&, Tensor x, CrossWeights weights, Tensor scratch, Tensor y))
/// Computes the wgrads of all layers, and dx if given. Overwrites all results. If the context collects launches
/// (Context::last_launches()), wgrads are deferred to the end of the backward pass; until then weights and `scratch`
/// must not change.
HCTR_OP(void multi_cross_backward(Context&, Tensor x, CrossWeights weights, Tensor dy, Tensor scratch,
                                  std::optional<Tensor> dx, CrossWeights d_weights))
TensorSpec multi_cross_scratch(int64_t batch, int64_t dim, int64_t layers);

}  // namespace hctr::ops
