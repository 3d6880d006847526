// A factorization machine whose vectors and weights come from the slots of a table and from additional tensors.
#pragma once

#include <optional>

#include "core/device/op.h"

namespace hctr::ops {

/// Limits on the width of y and on the vector length, because a GPU block must fit a few samples in shared memory.
inline constexpr int64_t kMostFmColumns = 1024, kMostFmDim = 256;

/// The first and the second order of a factorization machine in one pass. Sample b has the rows b * slots to
/// b * slots + slots - 1 of x. The sample's vectors e_j are the first dim columns of these rows, then the vectors in
/// `vectors`. The sample's weights w_j are the last column of these rows, then `weights`.
///   y[b] = [e_0 | e_1 | ...]
///   second[b] = sum_k 1/2 * ((sum_j e_j[k])^2 - sum_j e_j[k]^2)
///   first[b] = sum_j w_j
/// Shapes: x [batch * slots, dim + 1], vectors [batch, n * dim], weights [batch, m], y [batch, (slots + n) * dim] of at
/// most kMostFmColumns, second and first [batch, 1]; dim at most kMostFmDim; n and m at least 1. Dtypes: f32 f16 bf16,
/// all alike; sums in f32. Source: S. Rendle, "Factorization Machines", ICDM 2010, Lemma 3.1.
HCTR_OP(void factorization_machine(Context&, Tensor x, Tensor vectors, Tensor weights, Tensor y, Tensor second,
                                   Tensor first))

/// The gradients to compute; an absent tensor is not requested.
struct FmGradients {
  std::optional<Tensor> x, vectors, weights;
};

/// The gradient of e_j[k] is the element of d_y for e_j[k], plus d_second * (sum_i e_i[k] - e_j[k]). The gradient of
/// w_j is d_first. y is the output of factorization_machine(), with the same `slots` and `dim`. Overwrites the
/// gradients.
HCTR_OP(void factorization_machine_backward(Context&, int64_t slots, int64_t dim, Tensor y, Tensor d_y, Tensor d_second,
                                            Tensor d_first, const FmGradients& gradients))

}  // namespace hctr::ops
