#include "ops/gemm/concat_linear.h"

#include <algorithm>

#include "core/device/profiler.h"
#include "ops/common/element_loops.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/concat_linear_parts.h"
#include "ops/gemm/linear.h"

namespace hctr::ops {
namespace {

constexpr int64_t kConcatRows = 64;  // rows per task

/// The sum of x[k] w[k * step] over k < n: sixteen independent partial sums, which are then added in order.
template <class A, class T>
A product_of_part(const T* x, const T* w, int64_t step, int64_t n) {
  constexpr int64_t kLanes = 16;
  A sums[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (int64_t i = 0; i < kLanes; ++i) sums[i] += static_cast<A>(x[k + i]) * static_cast<A>(w[(k + i) * step]);
  for (; k < n; ++k) sums[k % kLanes] += static_cast<A>(x[k]) * static_cast<A>(w[k * step]);
  A sum = 0;
  for (const A lane : sums) sum += lane;
  return sum;
}

void expect_column(const char* what, const Tensor& w, int64_t width, const Tensor& y) {
  expect_alike(what, {w, y});
  expect_shape(what, w, {width, 1});
  expect_shape(what, y, {y.rows(), 1});
}

}  // namespace

void concat_linear(Context& ctx, const std::vector<Tensor>& x, Tensor w, std::optional<Tensor> bias, Tensor y) {
  HCTR_EXPECT(!x.empty() && x.size() <= kMostConcatParts, "concat_linear of ", x.size(), " inputs");
  int64_t width = 0;
  for (const Tensor& part : x) {
    expect_on("concat_linear", ctx.device(), part);
    expect_alike("concat_linear", {part, y});
    HCTR_EXPECT(part.rank() == 2 && part.dim(0) == y.rows(), "concat_linear of ", to_string(part.shape()), " to ",
                to_string(y.shape()));
    width += part.dim(1);
  }
  expect_column("concat_linear", w, width, y);
  if (bias) {
    expect_shape("concat_linear bias", *bias, {1});
    expect_alike("concat_linear bias", {*bias, y});
  }
  count_flops(ctx, 2.0 * static_cast<double>(y.rows()) * static_cast<double>(width));
  HCTR_ON_DEVICE(ctx, concat_linear(ctx, x, w, bias, y));
}

void cpu::concat_linear(Context& ctx, const std::vector<Tensor>& x, Tensor w, std::optional<Tensor> bias, Tensor y) {
  dispatch_real(y.dtype(), [&]<class T>() {
    const auto Y = y.view<T, 2>();
    ctx.threads().parallel_for(y.rows(), kConcatRows, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const T* of_part = w.data<const T>();
        Acc<T> sum = 0;
        for (const Tensor& part : x) {
          sum += product_of_part<Acc<T>>(part.view<const T, 2>().row(b), of_part, w.row_stride(), part.dim(1));
          of_part += part.dim(1) * w.row_stride();
        }
        if (bias) sum += static_cast<Acc<T>>(*bias->data<const T>());
        Y(b, 0) = static_cast<T>(sum);
      }
    });
  });
}

TensorSpec concat_linear_scratch(int64_t rows, const std::vector<int64_t>& widths) {
  int64_t width = 0, widest = 0;
  for (const int64_t each : widths) {
    width += each;
    widest = std::max(widest, each);
  }
  const int64_t on_gpu = concat_linear_parts(rows, width) * concat_linear_part_width(width);
  return TensorSpec(DType::f32, {std::max(on_gpu, bias_gradient_scratch(widest).shape.elements())});
}

void concat_linear_backward(Context& ctx, Tensor w, Tensor d_y, const std::vector<ConcatLinearInput>& inputs,
                            Tensor d_w, std::optional<Tensor> d_bias, Tensor scratch) {
  HCTR_EXPECT(!inputs.empty() && inputs.size() <= kMostConcatParts, "concat_linear_backward of ", inputs.size(),
              " inputs");
  expect_on("concat_linear_backward", ctx.device(), d_y);
  int64_t width = 0;
  std::vector<int64_t> widths;
  const auto expect_summed = [&](const char* what, const Tensor& sums) { expect_alike(what, {sums, d_w}); };
  for (const ConcatLinearInput& input : inputs) {
    const Tensor& x = input.x;
    expect_alike("concat_linear_backward", {x, d_y});
    HCTR_EXPECT(x.rank() == 2 && x.dim(0) == d_y.rows(), "concat_linear_backward of ", to_string(x.shape()), " and ",
                to_string(d_y.shape()));
    HCTR_EXPECT(input.d_x || !input.below_relu, "concat_linear_backward: an input with a ReLU needs d_x");
    widths.push_back(x.dim(1));
    width += widths.back();
    if (!input.d_x) continue;
    expect_alike("concat_linear_backward", {*input.d_x, d_y});
    expect_shape("concat_linear_backward d_x", *input.d_x, x.shape());
    if (!input.below_relu) continue;
    expect_shape("concat_linear_backward below_relu", input.below_relu->d_bias, {x.dim(1)});
    expect_summed("concat_linear_backward below_relu", input.below_relu->d_bias);
  }
  expect_column("concat_linear_backward", w, width, d_y);
  expect_shape("concat_linear_backward d_w", d_w, w.shape());
  HCTR_EXPECT(d_w.dtype() == w.dtype() || (d_w.dtype() == DType::f32 && size_of(w.dtype()) == 2),
              "concat_linear_backward of ", name_of(w.dtype()),
              ": unsupported dtype of the wgrad: ", name_of(d_w.dtype()));
  if (d_bias) {
    expect_shape("concat_linear_backward d_bias", *d_bias, {1});
    expect_summed("concat_linear_backward d_bias", *d_bias);
  }
  HCTR_EXPECT(scratch.elements() >= concat_linear_scratch(d_y.rows(), widths).shape.elements(),
              "concat_linear_backward() needs more scratch memory");
  HCTR_ON_DEVICE(ctx, concat_linear_backward(ctx, w, d_y, inputs, d_w, d_bias, scratch));
}

void cpu::concat_linear_backward(Context& ctx, Tensor w, Tensor d_y, const std::vector<ConcatLinearInput>& inputs,
                                 Tensor d_w, std::optional<Tensor> d_bias, Tensor scratch) {
  int64_t begin = 0;
  for (const ConcatLinearInput& input : inputs) {
    const int64_t end = begin + input.x.dim(1);
    if (input.d_x) {
      ops::matmul(ctx, d_y, Transpose::no, w.row_range(begin, end), Transpose::yes, *input.d_x);
      if (const auto& relu = input.below_relu)
        cpu::relu_bias_gradient(ctx, relu->factor, input.x, *input.d_x, *input.d_x, relu->d_bias, scratch);
    }
    ops::matmul(ctx, input.x, Transpose::yes, d_y, Transpose::no, d_w.row_range(begin, end));
    begin = end;
  }
  if (d_bias) cpu::bias_gradient(ctx, d_y, *d_bias, scratch);
}

}  // namespace hctr::ops
