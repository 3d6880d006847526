// Second-order interactions of a factorization machine.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// y[b,k] = 1/2 * ((sum_s x[b,s,k])^2 - sum_s x[b,s,k]^2): the sum of the products over all pairs of slots. Shapes: x
/// [batch, slots * dim], ordered by slot, y [batch, dim]. Dtypes: f32 f16 bf16; sums in f32. Cost: one pass over x.
/// Source: S. Rendle, "Factorization Machines", ICDM 2010, Lemma 3.1.
HCTR_OP(void fm_order2(Context&, Tensor x, Tensor y))
/// dx[b,s,k] = dy[b,k] * (sum_t x[b,t,k] - x[b,s,k]). Overwrites dx.
HCTR_OP(void fm_order2_backward(Context&, Tensor x, Tensor dy, Tensor dx))

}  // namespace hctr::ops
