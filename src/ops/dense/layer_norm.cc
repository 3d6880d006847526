#include "ops/dense/layer_norm.h"

#include <cmath>

#include "ops/common/checks.h"
#include "ops/dense/layer_norm_rules.h"

namespace hctr::ops {
namespace {

void check_rows(const char* what, Context& ctx, const Tensor& x, const Tensor& y, const Tensor& stats) {
  expect_on(what, ctx.device(), x);
  HCTR_EXPECT(x.rank() >= 2, what, ": expected at least 2 dimensions, found shape ", to_string(x.shape()));
  expect_shape(what, y, x.shape());
  expect_alike(what, {x, y});
  expect_dense_tensor(what, ctx.device(), stats, layer_norm_stats(x.spec()).shape, sum_dtype(x.dtype()));
}

int64_t last(const Tensor& x) { return x.dim(x.rank() - 1); }

}  // namespace

TensorSpec layer_norm_stats(const TensorSpec& x) {
  const int64_t width = x.shape[x.shape.rank() - 1];
  return TensorSpec(DType::f32, {width == 0 ? 0 : x.shape.elements() / width, 2});
}

void layer_norm(Context& ctx, Tensor x, Tensor gamma, Tensor beta, float eps, Tensor stats, Tensor y) {
  check_rows("layer_norm", ctx, x, y, stats);
  expect_dense_tensor("layer_norm gamma", ctx.device(), gamma, {last(x)}, x.dtype());
  expect_dense_tensor("layer_norm beta", ctx.device(), beta, {last(x)}, x.dtype());
  HCTR_ON_DEVICE(ctx, layer_norm(ctx, x, gamma, beta, eps, stats, y));
}

void cpu::layer_norm(Context& ctx, Tensor x, Tensor gamma, Tensor beta, float eps, Tensor stats, Tensor y) {
  dispatch_real(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const LastRows<const T> from = last_rows<const T>(x);
    const LastRows<T> to = last_rows<T>(y);
    const T *scale = gamma.data<const T>(), *shift = beta.data<const T>();
    const int64_t n = from.width;
    ctx.threads().parallel_for(from.count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = from.row(r);
        A mean = 0, variance = 0;
        for (int64_t j = 0; j < n; ++j) mean += static_cast<A>(row[j]);
        mean /= static_cast<A>(n);
        for (int64_t j = 0; j < n; ++j) variance += (static_cast<A>(row[j]) - mean) * (static_cast<A>(row[j]) - mean);
        const A rstd = 1 / std::sqrt(variance / static_cast<A>(n) + static_cast<A>(eps));
        stats.data<A>()[2 * r] = mean;
        stats.data<A>()[2 * r + 1] = rstd;
        for (int64_t j = 0; j < n; ++j)
          to.row(r)[j] = static_cast<T>(static_cast<A>(scale[j]) * ((static_cast<A>(row[j]) - mean) * rstd) +
                                        static_cast<A>(shift[j]));
      }
    });
  });
}

void layer_norm_backward(Context& ctx, Tensor x, Tensor dy, Tensor gamma, Tensor stats, Tensor dx) {
  check_rows("layer_norm_backward dy", ctx, x, dy, stats);
  check_rows("layer_norm_backward dx", ctx, x, dx, stats);
  expect_dense_tensor("layer_norm_backward gamma", ctx.device(), gamma, {last(x)}, x.dtype());
  HCTR_ON_DEVICE(ctx, layer_norm_backward(ctx, x, dy, gamma, stats, dx));
}

void cpu::layer_norm_backward(Context& ctx, Tensor x, Tensor dy, Tensor gamma, Tensor stats, Tensor dx) {
  dispatch_real(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const LastRows<const T> from = last_rows<const T>(x), gradient = last_rows<const T>(dy);
    const LastRows<T> to = last_rows<T>(dx);
    const T* scale = gamma.data<const T>();
    const int64_t n = from.width;
    ctx.threads().parallel_for(from.count, 64, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const A mean = stats.data<const A>()[2 * r], rstd = stats.data<const A>()[2 * r + 1];
        const auto g = [&](int64_t j) { return static_cast<A>(scale[j]) * static_cast<A>(gradient.row(r)[j]); };
        const auto hat = [&](int64_t j) { return (static_cast<A>(from.row(r)[j]) - mean) * rstd; };
        A sum = 0, sum_hat = 0;
        for (int64_t j = 0; j < n; ++j) {
          sum += g(j);
          sum_hat += g(j) * hat(j);
        }
        sum /= static_cast<A>(n);
        sum_hat /= static_cast<A>(n);
        for (int64_t j = 0; j < n; ++j) to.row(r)[j] = static_cast<T>(rstd * (g(j) - sum - hat(j) * sum_hat));
      }
    });
  });
}

void layer_norm_weight_gradients(Context& ctx, Tensor x, Tensor dy, Tensor stats, Tensor scratch, Tensor d_gamma,
                                 Tensor d_beta) {
  check_rows("layer_norm_weight_gradients", ctx, x, dy, stats);
  expect_shape("layer_norm_weight_gradients scratch", scratch, column_sums_scratch(last(x)).shape);
  HCTR_EXPECT(scratch.dense(), "layer_norm_weight_gradients: expected dense scratch memory, found strided rows");
  expect_dense_tensor("layer_norm_weight_gradients d_gamma", ctx.device(), d_gamma, {last(x)}, sum_dtype(x.dtype()));
  expect_dense_tensor("layer_norm_weight_gradients d_beta", ctx.device(), d_beta, {last(x)}, sum_dtype(x.dtype()));
  HCTR_ON_DEVICE(ctx, layer_norm_weight_gradients(ctx, x, dy, stats, scratch, d_gamma, d_beta));
}

void cpu::layer_norm_weight_gradients(Context& ctx, Tensor x, Tensor dy, Tensor stats, Tensor, Tensor d_gamma,
                                      Tensor d_beta) {
  dispatch_real(x.dtype(), [&]<class T>() {
    const LayerNormWeightSums<T> f{last_rows<const T>(x), last_rows<const T>(dy), stats.data<const Acc<T>>()};
    sum_columns(ctx, f.x.count, f.x.width, f, d_beta.data<Acc<T>>(), d_gamma.data<Acc<T>>());
  });
}

}  // namespace hctr::ops
