// The fused end of a model, forward and backward: a layer with one output, an optional sum with other terms, and the
// binary cross entropy of the sum.
#pragma once

#include <optional>
#include <vector>

#include "ops/gemm/concat_linear.h"
#include "ops/loss/cross_entropy.h"

namespace hctr::ops {

/// y = [x_0 | x_1 | ...] w + bias, and the gradients of concat_linear_backward().
struct LogitLayer {
  std::vector<ConcatLinearInput> inputs;
  Tensor w;
  std::optional<Tensor> bias;
  Tensor y, d_w;
  std::optional<Tensor> d_bias;
  Tensor scratch;  ///< memory that logit_loss_scratch() describes
};

/// logits = the sum of `terms` in order; one of the terms is y of the layer. Each d_term gets the gradient of the
/// logits, and may share memory with that gradient.
struct LogitSum {
  std::vector<Tensor> terms;
  std::vector<std::optional<Tensor>> d_terms;
  Tensor logits;
};

/// The arguments of binary_cross_entropy() except the logits.
struct LogitTarget {
  Tensor label, loss, probability;
  LogitGradient gradient;
  TermWeights weights{};
  Tensor blocks_done;  ///< [1], i32; 0 before and after the call
};

/// Scratch memory of a layer with inputs of these widths. Also suffices for concat_linear_backward().
TensorSpec logit_loss_scratch(int64_t rows, const std::vector<int64_t>& widths);

/// Computes the layer, the sum, the loss and all gradients. Without a sum, the logits are y. Equals this sequence:
/// concat_linear(), or linear() for one input; add(); binary_cross_entropy() with its gradient, copied to d_terms;
/// concat_linear_backward(). logit_loss() completes y, the logits, the loss, the probability and the gradient of the
/// logits. logit_loss_backward() completes all other results; its arguments must be those of logit_loss(), unchanged.
/// On a GPU, logit_loss() is one kernel that reads x once if rows of x and d_x are aligned to 16 bytes. In that case,
/// logit_loss_backward() only adds the partial wgrads. The order of sums depends on the shapes only. Shapes, dtypes and
/// errors as in the sequence of operators. Needs ctx.state().
HCTR_OP(void logit_loss(Context&, const LogitLayer&, const std::optional<LogitSum>&, const LogitTarget&))
HCTR_OP(void logit_loss_backward(Context&, const LogitLayer&, const std::optional<LogitSum>&, const LogitTarget&))

}  // namespace hctr::ops
