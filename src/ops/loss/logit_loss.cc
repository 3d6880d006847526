#include "ops/loss/logit_loss.h"

#include "ops/common/add.h"
#include "ops/common/checks.h"
#include "ops/common/copy.h"
#include "ops/gemm/concat_linear_parts.h"
#include "ops/gemm/linear.h"
#include "ops/loss/logit_loss_parts.h"

namespace hctr::ops {
namespace {

std::vector<int64_t> widths_of(const LogitLayer& layer) {
  std::vector<int64_t> widths;
  for (const ConcatLinearInput& input : layer.inputs) widths.push_back(input.x.dim(1));
  return widths;
}

/// Checks the arguments of the fused kernel with the checks of the separate operators.
void expect_logit_loss(const char* what, Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                       const LogitTarget& target) {
  HCTR_EXPECT(ctx.state(), what, " needs a step state");
  HCTR_EXPECT(!layer.inputs.empty() && layer.inputs.size() <= kMostConcatParts, what, " of ", layer.inputs.size(),
              " inputs");
  const Tensor& logits = logits_of(layer, sum);
  const Shape column{layer.y.rows(), 1};
  const auto expect_column = [&](const char* name, const Tensor& t, DType dtype) {
    expect_tensor(cat(what, " ", name).c_str(), ctx.device(), t, column, dtype);
  };
  const DType dtype = layer.y.dtype(), wide = sum_dtype(dtype);
  expect_column("y", layer.y, dtype);
  expect_column("logits", logits, dtype);
  expect_column("d_logits", target.gradient.d_logits, dtype);
  expect_column("label", target.label, wide);
  expect_column("probability", target.probability, wide);
  if (target.weights.samples) expect_column("weights", *target.weights.samples, wide);
  expect_tensor(cat(what, " loss").c_str(), ctx.device(), target.loss, {1}, wide);
  expect_tensor(cat(what, " blocks_done").c_str(), ctx.device(), target.blocks_done, {1}, DType::i32);
  int64_t width = 0;
  for (const ConcatLinearInput& input : layer.inputs) {
    expect_tensor(cat(what, " x").c_str(), ctx.device(), input.x, {column[0], input.x.dim(1)}, dtype);
    if (input.d_x) expect_tensor(cat(what, " d_x").c_str(), ctx.device(), *input.d_x, input.x.shape(), dtype);
    width += input.x.dim(1);
  }
  expect_tensor(cat(what, " w").c_str(), ctx.device(), layer.w, {width, 1}, dtype);
  expect_shape(what, layer.d_w, {width, 1});
  if (layer.bias) expect_tensor(cat(what, " bias").c_str(), ctx.device(), *layer.bias, {1}, dtype);
  HCTR_EXPECT(layer.scratch.elements() >= logit_loss_scratch(column[0], widths_of(layer)).shape.elements(), what,
              " needs more scratch memory");
  if (!sum) return;
  HCTR_EXPECT(sum->terms.size() == sum->d_terms.size(), what, " of ", sum->terms.size(),
              " terms needs as many "
              "gradients, found ",
              sum->d_terms.size());
  int times_y = 0;
  for (size_t i = 0; i < sum->terms.size(); ++i) {
    expect_column("term", sum->terms[i], dtype);
    if (sum->d_terms[i]) expect_column("d_term", *sum->d_terms[i], dtype);
    times_y += sum->terms[i].bytes() == layer.y.bytes();
  }
  HCTR_EXPECT(times_y == 1 || column[0] == 0, what, ": y is ", times_y, " terms of the sum, expected one term");
}

}  // namespace

TensorSpec logit_loss_scratch(int64_t rows, const std::vector<int64_t>& widths) {
  int64_t width = 0;
  for (const int64_t each : widths) width += each;
  constexpr int64_t kOfLoss = sizeof(double) / sizeof(float);
  const int64_t on_gpu = logit_loss_parts(rows) * (kOfLoss + concat_linear_part_width(width));
  return TensorSpec(DType::f32, {std::max(on_gpu, concat_linear_scratch(rows, widths).shape.elements())});
}

void logit_loss(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum, const LogitTarget& target) {
  expect_logit_loss("logit_loss", ctx, layer, sum, target);
  HCTR_ON_DEVICE(ctx, logit_loss(ctx, layer, sum, target));
}

void logit_loss_backward(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                         const LogitTarget& target) {
  expect_logit_loss("logit_loss_backward", ctx, layer, sum, target);
  HCTR_ON_DEVICE(ctx, logit_loss_backward(ctx, layer, sum, target));
}

void one_by_one::logit_loss(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                            const LogitTarget& target) {
  std::vector<Tensor> x;
  for (const ConcatLinearInput& input : layer.inputs) x.push_back(input.x);
  if (x.size() > 1)
    ops::concat_linear(ctx, x, layer.w, layer.bias, layer.y);
  else if (layer.bias)
    ops::linear(ctx, x[0], layer.w, *layer.bias, layer.y);
  else
    ops::matmul(ctx, x[0], Transpose::no, layer.w, Transpose::no, layer.y);
  if (sum) ops::add(ctx, sum->terms, sum->logits);
  ops::binary_cross_entropy(ctx, logits_of(layer, sum), target.label, target.loss, target.probability, target.weights,
                            target.gradient);
}

void one_by_one::logit_loss_backward(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                                     const LogitTarget& target) {
  const Tensor& gradient = target.gradient.d_logits;
  if (sum)
    for (const std::optional<Tensor>& d_term : sum->d_terms)
      if (d_term) ops::copy(ctx, gradient, *d_term);
  ops::concat_linear_backward(ctx, layer.w, gradient, layer.inputs, layer.d_w, layer.d_bias, layer.scratch);
}

void cpu::logit_loss(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                     const LogitTarget& target) {
  one_by_one::logit_loss(ctx, layer, sum, target);
}

void cpu::logit_loss_backward(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                              const LogitTarget& target) {
  one_by_one::logit_loss_backward(ctx, layer, sum, target);
}

}  // namespace hctr::ops
