#include "ops/concat_linear.h"

#include "device/profiler.h"
#include "ops/element_loops.h"

namespace hctr::ops {
namespace {

constexpr int64_t kConcatRows = 64;  // per task

/// The sum over k of x[k] w[k step]: sixteen sums that do not wait for each other, then these in order.
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

void concat_linear_backward(Context& ctx, Tensor w, Tensor d_y, const std::vector<int64_t>& widths,
                            const std::vector<std::optional<Tensor>>& d_x) {
  HCTR_EXPECT(widths.size() == d_x.size(), "concat_linear_backward of ", widths.size(), " widths and ", d_x.size(),
              " gradients");
  int64_t width = 0;
  for (size_t p = 0; p < widths.size(); ++p) {
    width += widths[p];
    if (!d_x[p]) continue;
    count_flops(ctx, 2.0 * static_cast<double>(d_y.rows()) * static_cast<double>(widths[p]));
    expect_alike("concat_linear_backward", {*d_x[p], d_y});
    expect_shape("concat_linear_backward d_x", *d_x[p], {d_y.rows(), widths[p]});
  }
  expect_on("concat_linear_backward", ctx.device(), d_y);
  expect_column("concat_linear_backward", w, width, d_y);
  HCTR_ON_DEVICE(ctx, concat_linear_backward(ctx, w, d_y, widths, d_x));
}

void cpu::concat_linear_backward(Context& ctx, Tensor w, Tensor d_y, const std::vector<int64_t>& widths,
                                 const std::vector<std::optional<Tensor>>& d_x) {
  dispatch_real(d_y.dtype(), [&]<class T>() {
    const auto DY = d_y.view<const T, 2>();
    ctx.threads().parallel_for(d_y.rows(), kConcatRows, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const T* of_part = w.data<const T>();
        const auto factor = static_cast<Acc<T>>(DY(b, 0));
        for (size_t p = 0; p < widths.size(); of_part += widths[p++] * w.row_stride()) {
          if (!d_x[p]) continue;
          T* to = d_x[p]->template view<T, 2>().row(b);
          for (int64_t k = 0; k < widths[p]; ++k)
            to[k] = static_cast<T>(factor * static_cast<Acc<T>>(of_part[k * w.row_stride()]));
        }
      }
    });
  });
}

}  // namespace hctr::ops
