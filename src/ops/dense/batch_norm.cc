#include "ops/dense/batch_norm.h"

#include "ops/common/checks.h"
#include "ops/dense/batch_norm_rules.h"

namespace hctr::ops {
namespace {

void check_running(const char* what, Context& ctx, const RunningStatistics& r, int64_t n, DType dtype) {
  expect_dense_tensor(what, ctx.device(), r.mean, {n}, dtype);
  expect_dense_tensor(what, ctx.device(), r.var, {n}, dtype);
  expect_dense_tensor(what, ctx.device(), r.weight, {1}, dtype);
}

void check_matrix(const char* what, Context& ctx, const Tensor& x) {
  expect_on(what, ctx.device(), x);
  HCTR_EXPECT(x.rank() == 2, what, ": expected a matrix, found shape ", to_string(x.shape()));
}

void check_scratch(const char* what, Context& ctx, const Tensor& scratch, int64_t n) {
  expect_on(what, ctx.device(), scratch);
  expect_shape(what, scratch, column_sums_scratch(n).shape);
  HCTR_EXPECT(scratch.dense(), what, ": expected dense scratch memory, found strided rows");
}

}  // namespace

void batch_norm_sums(Context& ctx, Tensor x, RunningStatistics running, Tensor scratch, Tensor sums) {
  check_matrix("batch_norm_sums", ctx, x);
  const int64_t n = x.dim(1);
  check_running("batch_norm_sums running", ctx, running, n, sum_dtype(x.dtype()));
  check_scratch("batch_norm_sums scratch", ctx, scratch, n);
  expect_dense_tensor("batch_norm_sums sums", ctx.device(), sums, {2 * n + 1}, sum_dtype(x.dtype()));
  HCTR_EXPECT(ctx.state(), "batch_norm_sums() needs a step state");
  HCTR_ON_DEVICE(ctx, batch_norm_sums(ctx, x, running, scratch, sums));
}

void cpu::batch_norm_sums(Context& ctx, Tensor x, RunningStatistics running, Tensor, Tensor sums) {
  const int64_t n = x.dim(1), rows = valid_rows(*ctx.state(), x.rows());
  dispatch_real(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    A* to = sums.data<A>();
    sum_columns(ctx, rows, n,
                ShiftedSums<T>{x.matrix<const T>(), running.mean.data<const A>(), running.weight.data<const A>()}, to,
                to + n);
    to[2 * n] = static_cast<A>(rows);
  });
}

void batch_norm_statistics(Context& ctx, Tensor sums, float factor, float eps, RunningStatistics running,
                           Tensor batch) {
  HCTR_EXPECT(batch.rank() == 2, "batch_norm_statistics(): the output has shape ", to_string(batch.shape()));
  const int64_t n = batch.dim(1);
  expect_dense_tensor("batch_norm_statistics sums", ctx.device(), sums, {2 * n + 1}, sum_dtype(sums.dtype()));
  expect_dense_tensor("batch_norm_statistics batch", ctx.device(), batch, {2, n}, sums.dtype());
  check_running("batch_norm_statistics running", ctx, running, n, sums.dtype());
  HCTR_ON_DEVICE(ctx, batch_norm_statistics(ctx, sums, factor, eps, running, batch));
}

void cpu::batch_norm_statistics(Context&, Tensor sums, float factor, float eps, RunningStatistics running,
                                Tensor batch) {
  const int64_t n = batch.dim(1);
  const auto run = [&]<class A>() {
    A* weight = running.weight.data<A>();
    const A* from = sums.data<const A>();
    for (int64_t j = 0; j < n; ++j)
      update_statistics(from, n, j, static_cast<A>(factor), static_cast<A>(eps), *weight, running.mean.data<A>(),
                        running.var.data<A>(), batch.data<A>());
    if (from[2 * n] > 0) *weight = (1 - static_cast<A>(factor)) * *weight + static_cast<A>(factor);
  };
  sums.dtype() == DType::f64 ? run.template operator()<double>() : run.template operator()<float>();
}

void batch_norm_running(Context& ctx, RunningStatistics running, float eps, Tensor batch) {
  HCTR_EXPECT(batch.rank() == 2, "batch_norm_running(): the output has shape ", to_string(batch.shape()));
  expect_dense_tensor("batch_norm_running batch", ctx.device(), batch, {2, batch.dim(1)}, sum_dtype(batch.dtype()));
  check_running("batch_norm_running", ctx, running, batch.dim(1), batch.dtype());
  HCTR_ON_DEVICE(ctx, batch_norm_running(ctx, running, eps, batch));
}

void cpu::batch_norm_running(Context&, RunningStatistics running, float eps, Tensor batch) {
  const int64_t n = batch.dim(1);
  const auto run = [&]<class A>() {
    const A *mean = running.mean.data<const A>(), *var = running.var.data<const A>(),
            weight = *running.weight.data<const A>();
    A* to = batch.data<A>();
    for (int64_t j = 0; j < n; ++j) {
      to[j] = unbiased(mean[j], weight, A(0));
      to[n + j] = 1 / std::sqrt(unbiased(var[j], weight, A(1)) + static_cast<A>(eps));
    }
  };
  batch.dtype() == DType::f64 ? run.template operator()<double>() : run.template operator()<float>();
}

void batch_norm_apply(Context& ctx, Tensor x, Tensor batch, Tensor gamma, Tensor beta, Tensor y) {
  check_matrix("batch_norm_apply", ctx, x);
  const int64_t n = x.dim(1);
  expect_shape("batch_norm_apply y", y, x.shape());
  expect_alike("batch_norm_apply", {x, y});
  expect_dense_tensor("batch_norm_apply batch", ctx.device(), batch, {2, n}, sum_dtype(x.dtype()));
  expect_dense_tensor("batch_norm_apply gamma", ctx.device(), gamma, {n}, x.dtype());
  expect_dense_tensor("batch_norm_apply beta", ctx.device(), beta, {n}, x.dtype());
  HCTR_ON_DEVICE(ctx, batch_norm_apply(ctx, x, batch, gamma, beta, y));
}

void cpu::batch_norm_apply(Context& ctx, Tensor x, Tensor batch, Tensor gamma, Tensor beta, Tensor y) {
  dispatch_real(x.dtype(), [&]<class T>() {
    map_columns(ctx, Normalize<T>{statistics_of<Acc<T>>(batch), gamma.data<const T>(), beta.data<const T>()},
                y.matrix<T>(), x.matrix<const T>());
  });
}

void batch_norm_backward_sums(Context& ctx, Tensor x, Tensor dy, Tensor batch, Tensor scratch, Tensor d_sums) {
  check_matrix("batch_norm_backward_sums", ctx, x);
  const int64_t n = x.dim(1);
  expect_shape("batch_norm_backward_sums dy", dy, x.shape());
  expect_alike("batch_norm_backward_sums", {x, dy});
  expect_dense_tensor("batch_norm_backward_sums batch", ctx.device(), batch, {2, n}, sum_dtype(x.dtype()));
  check_scratch("batch_norm_backward_sums scratch", ctx, scratch, n);
  expect_dense_tensor("batch_norm_backward_sums d_sums", ctx.device(), d_sums, {2, n}, sum_dtype(x.dtype()));
  HCTR_EXPECT(ctx.state(), "batch_norm_backward_sums() needs a step state");
  HCTR_ON_DEVICE(ctx, batch_norm_backward_sums(ctx, x, dy, batch, scratch, d_sums));
}

void cpu::batch_norm_backward_sums(Context& ctx, Tensor x, Tensor dy, Tensor batch, Tensor, Tensor d_sums) {
  const int64_t n = x.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    Acc<T>* to = d_sums.data<Acc<T>>();
    sum_columns(ctx, valid_rows(*ctx.state(), x.rows()), n, batch_norm_gradient_sums<T>(x, dy, batch), to, to + n);
  });
}

void batch_norm_backward(Context& ctx, Tensor x, Tensor dy, Tensor batch, Tensor gamma, Tensor sums, Tensor d_sums,
                         Tensor dx) {
  check_matrix("batch_norm_backward", ctx, x);
  const int64_t n = x.dim(1);
  expect_shape("batch_norm_backward dy", dy, x.shape());
  expect_shape("batch_norm_backward dx", dx, x.shape());
  expect_alike("batch_norm_backward", {x, dy, dx});
  expect_dense_tensor("batch_norm_backward batch", ctx.device(), batch, {2, n}, sum_dtype(x.dtype()));
  expect_dense_tensor("batch_norm_backward gamma", ctx.device(), gamma, {n}, x.dtype());
  expect_dense_tensor("batch_norm_backward sums", ctx.device(), sums, {2 * n + 1}, sum_dtype(x.dtype()));
  expect_dense_tensor("batch_norm_backward d_sums", ctx.device(), d_sums, {2, n}, sum_dtype(x.dtype()));
  HCTR_EXPECT(ctx.state(), "batch_norm_backward() needs a step state");
  HCTR_ON_DEVICE(ctx, batch_norm_backward(ctx, x, dy, batch, gamma, sums, d_sums, dx));
}

void cpu::batch_norm_backward(Context& ctx, Tensor x, Tensor dy, Tensor batch, Tensor gamma, Tensor sums, Tensor d_sums,
                              Tensor dx) {
  dispatch_real(x.dtype(), [&]<class T>() {
    map_columns(ctx, batch_norm_backward_of<T>(x, batch, gamma, sums, d_sums, ctx.state()), dx.matrix<T>(),
                x.matrix<const T>(), dy.matrix<const T>());
  });
}

}  // namespace hctr::ops
