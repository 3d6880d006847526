// The end of a model: a layer with one output, the addends of its result, and the log loss of the sum, forward and
// backward.
#pragma once

#include <optional>
#include <vector>

#include "ops/gemm/concat_linear.h"
#include "ops/loss/cross_entropy.h"

namespace hctr::ops {

/// y = [x_0 | x_1 | ...] w + bias, with the gradients that concat_linear_backward() writes.
struct LogitLayer {
  std::vector<ConcatLinearInput> inputs;
  Tensor w;
  std::optional<Tensor> bias;
  Tensor y, d_w;
  std::optional<Tensor> d_bias;
  Tensor scratch;  ///< logit_loss_scratch()
};

/// logits = the sum of the terms in their order; one of them is y of the layer. Each d_term gets the gradient of the
/// logits and may be its memory.
struct LogitSum {
  std::vector<Tensor> terms;
  std::vector<std::optional<Tensor>> d_terms;
  Tensor logits;
};

/// The arguments of binary_cross_entropy(), but for the logits.
struct LogitTarget {
  Tensor label, loss, probability;
  LogitGradient gradient;
  TermWeights weights{};
  Tensor blocks_done;  ///< [1], i32: 0 before and after
};

/// Scratch memory of a layer with inputs of these widths. Enough for concat_linear_backward() too.
TensorSpec logit_loss_scratch(int64_t rows, const std::vector<int64_t>& widths);

/// Layer, sum (none: the logits are y), loss and all gradients: concat_linear() or, of one input, linear(); add();
/// binary_cross_entropy() with its gradient; copies of it; concat_linear_backward(). logit_loss() completes y, the
/// logits, the loss, the probability and the gradient of the logits. logit_loss_backward() completes the rest; call it
/// with the same arguments, unchanged. On a GPU logit_loss() is one kernel that reads x once, if rows of x and d_x are
/// aligned to 16 bytes; the second call then only adds partial wgrads. The order of sums depends on the shapes alone.
/// Shapes, dtypes and errors: those of the operators above. Needs ctx.state().
HCTR_OP(void logit_loss(Context&, const LogitLayer&, const std::optional<LogitSum>&, const LogitTarget&))
HCTR_OP(void logit_loss_backward(Context&, const LogitLayer&, const std::optional<LogitSum>&, const LogitTarget&))

}  // namespace hctr::ops
