// Pooling with a weight per key, and max pooling. Also the gradients of rows and weights.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/device/op.h"
#include "ops/embedding/row_elements.h"

namespace hctr::ops {

/// Pooling of the rows v of a bag with weights w. sum: sum w v. mean: (sum w v) / sum w. sqrtn: (sum w v) / sqrt(sum
/// w^2). max: the elementwise maximum. none: one vector per key. The sums of weights include keys without a row. A bag
/// whose divisor is 0 gives 0.
enum class BagPooling { sum, mean, sqrtn, max, none };

/// The bags of one feature. `rows` and `weights` are lists with one element per position; bag b has the positions
/// offsets[b] up to offsets[b + 1]. All arrays are on the device.
struct BagList {
  const int32_t* offsets = nullptr;  // [bags + 1]
  int64_t bags = 0;
  int64_t most = 0;                // maximum number of positions; for pooling `none`: number of vectors
  const int32_t* rows = nullptr;   // [position]; 0: no row
  const float* weights = nullptr;  // [position]; null: all weights are 1
};

/// y[b, :] = the pooled rows of bag b. With `none`: y[i, :] = the row at position offsets[0] + i, or 0 if the position
/// has no row or does not exist. `chosen` [bags, dim], for max only: the first position whose row has the maximum, or
/// -1 if there is none. Shapes: y [bags or most, dim], any row stride; table [.., dim]. Dtypes: y f32; table f32 f16
/// bf16.
HCTR_OP(void pool_bags(Context&, BagList, RowMemory table, BagPooling, Tensor y, int32_t* chosen))

/// g[p, :] = the gradient of the row at position p, for each position of the bags. Shapes: dy as y in pool_bags(); g
/// [.., dim], dense. Dtypes: f32.
HCTR_OP(void key_gradients(Context&, BagList, BagPooling, Tensor dy, const int32_t* chosen, float* g))

/// dw[i] = the gradient of the weight at position offsets[0] + i. Not defined for max and none. A dot product has 32
/// partial sums: partial sum k adds the elements e with e % 32 = k; a pairwise tree adds the partial sums. Shapes: dw
/// [most].
HCTR_OP(void weight_gradients(Context&, BagList, RowMemory table, BagPooling, Tensor dy, float* dw))

/// The divisor of a bag, from the sum of its weights and the sum of their squares. If the divisor is 0, the bag gives
/// 0.
HCTR_HD inline float bag_divisor(BagPooling pooling, float weights, float squares) {
  return pooling == BagPooling::mean ? weights : pooling == BagPooling::sqrtn ? sqrtf(squares) : 1.0f;
}

/// The gradient of weight w in y = scale * sum w v, where scale = 1 / divisor, dot = v . dy for the row v of w, and sum
/// = sum w (v . dy) over the bag. sum: dot scale. mean: dot scale - sum scale^2. sqrtn: dot scale - w sum scale^3.
HCTR_HD inline float weight_gradient(BagPooling pooling, float dot, float weight, float scale, float sum) {
  const float own = dot * scale;
  if (pooling == BagPooling::mean) return own - sum * scale * scale;
  if (pooling == BagPooling::sqrtn) return own - weight * (sum * scale * scale * scale);
  return own;
}

}  // namespace hctr::ops
