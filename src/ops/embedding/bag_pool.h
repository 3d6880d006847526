// Pooling with a weight for each key, and by the largest element; the gradients of keys and of their weights.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/device/op.h"
#include "ops/embedding/row_elements.h"

namespace hctr::ops {

/// Pooling of the rows v of a bag with weights w: sum w v; that divided by sum w; divided by the root of sum w^2; the
/// maximum of each element; or none: each key has a vector of its own. The sums of weights include keys without a row.
/// Bags with a divisor of 0 give 0.
enum class BagPooling { sum, mean, sqrtn, max, none };

/// The bags of one feature: bag b has positions [offsets[b], offsets[b + 1]) of the lists of a table. All on the
/// device.
struct BagList {
  const int32_t* offsets = nullptr;  // [bags + 1]
  int64_t bags = 0;
  int64_t most = 0;                // positions: the number of vectors with `none`
  const int32_t* rows = nullptr;   // [position]; 0: no row
  const float* weights = nullptr;  // [position]; null: all are 1
};

/// y[b, :] = the pooled rows of bag b, or with `none` y[i, :] = the row at position offsets[0] + i; 0 where there is
/// none, and after the last position. `chosen`, of max alone, [bags, dim]: the first position whose row has the
/// element, -1 for none. Shapes: y [bags or most, dim], any row stride; table [.., dim]. Dtypes: y f32; table f32 f16
/// bf16.
HCTR_OP(void pool_bags(Context&, BagList, RowMemory table, BagPooling, Tensor y, int32_t* chosen))

/// g[p, :] = the gradient of the row at position p, for each position of the bags, given that of y. Shapes: dy as y; g
/// [.., dim], dense. Dtypes: f32.
HCTR_OP(void key_gradients(Context&, BagList, BagPooling, Tensor dy, const int32_t* chosen, float* g))

/// dw[i] = the gradient of the weight at position offsets[0] + i. Not defined for max and none. Sums over elements have
/// 32 partial sums, element e in partial sum e % 32, which are added in pairs. Shapes: dw [most].
HCTR_OP(void weight_gradients(Context&, BagList, RowMemory table, BagPooling, Tensor dy, float* dw))

/// The divisor of a bag with these sums of weights and of their squares; 0: the bag gives 0.
HCTR_HD inline float bag_divisor(BagPooling pooling, float weights, float squares) {
  return pooling == BagPooling::mean ? weights : pooling == BagPooling::sqrtn ? sqrtf(squares) : 1.0f;
}

/// The gradient of a weight, where y = scale * sum w v, `dot` = v . dy of its row, `sum` = sum w (v . dy) of the bag,
/// and scale = 1 / divisor: dot scale for a sum, less sum scale^2 for a mean, less w sum scale^3 for sqrtn.
HCTR_HD inline float weight_gradient(BagPooling pooling, float dot, float weight, float scale, float sum) {
  const float own = dot * scale;
  if (pooling == BagPooling::mean) return own - sum * scale * scale;
  if (pooling == BagPooling::sqrtn) return own - weight * (sum * scale * scale * scale);
  return own;
}

}  // namespace hctr::ops
