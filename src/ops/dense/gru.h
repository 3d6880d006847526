// One step of a gated recurrent unit, forward and backward. Source: K. Cho et al., "Learning Phrase Representations
// using RNN Encoder-Decoder", EMNLP 2014, equations 5 to 8. As in cuDNN, the reset gate is applied after the GEMM with
// the state.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

/// Let a = of_input + bias and s = of_state, both with the columns [r | z | n]. For every row:
///   r = sigmoid(a_r + s_r), z = sigmoid(a_z + s_z), n = tanh(a_n + r s_n), h = (1 - z) n + z * before.
/// `kept` gets r, z, n and s_n for backward.
/// Shapes: of_input and of_state [batch, 3 units], bias [3 units], before and h [batch, units], kept [batch, 4 units].
/// Dtypes: bias, before and h f32 f16 bf16, all alike; of_input, of_state and kept f32.
HCTR_OP(void gru_step(Context&, Tensor of_input, Tensor of_state, Tensor bias, Tensor before, Tensor kept, Tensor h))

/// The gradient of h is dh + through + direct. dh comes from the layer's output; the other two come from the next step.
/// `through` is the part that passes through the next step's GEMM with the state, `direct` is the part that bypasses
/// this GEMM. Writes d_of_input (the gradient of of_input + bias) and d_of_state. Overwrites `direct` with the part of
/// the gradient of `before` that bypasses the GEMM. Shapes: as in gru_step(); dh, through and direct [batch, units],
/// d_of_input and d_of_state [batch, 3 units]. Dtypes: before, dh, d_of_input and d_of_state equal; kept, through and
/// direct f32.
HCTR_OP(void gru_step_backward(Context&, Tensor kept, Tensor before, Tensor dh, Tensor through, Tensor direct,
                               Tensor d_of_input, Tensor d_of_state))

}  // namespace hctr::ops
