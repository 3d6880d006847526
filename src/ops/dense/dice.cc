#include "ops/dense/dice.h"

#include "ops/common/checks.h"
#include "ops/dense/dice_rules.h"

namespace hctr::ops {
namespace {

void check_dice(const char* what, Context& ctx, const Tensor& x, const Tensor& like, const Tensor& batch) {
  expect_on(what, ctx.device(), x);
  HCTR_EXPECT(x.rank() == 2, what, ": expected a matrix, found shape ", to_string(x.shape()));
  expect_shape(what, like, x.shape());
  expect_alike(what, {x, like});
  expect_dense_tensor(what, ctx.device(), batch, {2, x.dim(1)}, sum_dtype(x.dtype()));
}

void check_sums(const char* what, Context& ctx, const Tensor& x, const Tensor& scratch, const Tensor& sums) {
  expect_on(what, ctx.device(), scratch);
  expect_shape(what, scratch, column_sums_scratch(x.dim(1)).shape);
  HCTR_EXPECT(scratch.dense(), what, ": expected dense scratch memory, found strided rows");
  check_dice(what, ctx, x, x, sums);
  HCTR_EXPECT(ctx.state(), what, " needs a step state");
}

}  // namespace

void dice_start(Context& ctx, Tensor x, Tensor start) {
  expect_on("dice_start", ctx.device(), x);
  HCTR_EXPECT(x.rank() == 2 && ctx.state(), "dice_start: expected a matrix and a step state, found shape ",
              to_string(x.shape()), ctx.state() ? "" : " needs a step state");
  expect_dense_tensor("dice_start", ctx.device(), start, {x.dim(1) + 1}, sum_dtype(x.dtype()));
  HCTR_ON_DEVICE(ctx, dice_start(ctx, x, start));
}

void cpu::dice_start(Context& ctx, Tensor x, Tensor start) {
  const int64_t rows = valid_rows(*ctx.state(), x.rows());
  dispatch_real(x.dtype(), [&]<class T>() {
    for (int64_t j = 0; j < start.dim(0); ++j) start.data<Acc<T>>()[j] = start_of(x.matrix<const T>(), rows, j);
  });
}

void dice_sums(Context& ctx, Tensor x, Tensor start, Tensor scratch, Tensor sums) {
  check_sums("dice_sums", ctx, x, scratch, sums);
  expect_dense_tensor("dice_sums", ctx.device(), start, {x.dim(1) + 1}, sum_dtype(x.dtype()));
  HCTR_ON_DEVICE(ctx, dice_sums(ctx, x, start, scratch, sums));
}

void cpu::dice_sums(Context& ctx, Tensor x, Tensor start, Tensor, Tensor sums) {
  const int64_t n = x.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto* from = start.data<const Acc<T>>();
    auto* to = sums.data<Acc<T>>();
    sum_columns(ctx, valid_rows(*ctx.state(), x.rows()), n, ShiftedSums<T>{x.matrix<const T>(), from, from + n}, to,
                to + n);
  });
}

void dice_statistics(Context& ctx, Tensor start, float eps, Tensor batch) {
  expect_on("dice_statistics", ctx.device(), batch);
  HCTR_EXPECT(batch.rank() == 2 && batch.dim(0) == 2 && batch.dense(), "dice_statistics(): the output has shape ",
              to_string(batch.shape()));
  expect_dense_tensor("dice_statistics", ctx.device(), start, {batch.dim(1) + 1}, batch.dtype());
  HCTR_ON_DEVICE(ctx, dice_statistics(ctx, start, eps, batch));
}

void cpu::dice_statistics(Context&, Tensor start, float eps, Tensor batch) {
  const int64_t n = batch.dim(1);
  const auto run = [&]<class A>() {
    for (int64_t j = 0; j < n; ++j)
      column_statistics(start.data<const A>(), n, j, static_cast<A>(eps), batch.data<A>());
  };
  batch.dtype() == DType::f64 ? run.template operator()<double>() : run.template operator()<float>();
}

void dice(Context& ctx, Tensor x, float alpha, Tensor batch, Tensor y) {
  check_dice("dice", ctx, x, y, batch);
  HCTR_ON_DEVICE(ctx, dice(ctx, x, alpha, batch, y));
}

void cpu::dice(Context& ctx, Tensor x, float alpha, Tensor batch, Tensor y) {
  dispatch_real(x.dtype(),
                [&]<class T>() { map_columns(ctx, dice_of<T>(alpha, batch), y.matrix<T>(), x.matrix<const T>()); });
}

void dice_backward_sums(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor scratch, Tensor d_sums) {
  check_dice("dice_backward_sums", ctx, x, dy, batch);
  check_sums("dice_backward_sums", ctx, x, scratch, d_sums);
  HCTR_ON_DEVICE(ctx, dice_backward_sums(ctx, x, dy, alpha, batch, scratch, d_sums));
}

void cpu::dice_backward_sums(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor, Tensor d_sums) {
  const int64_t n = x.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    Acc<T>* to = d_sums.data<Acc<T>>();
    sum_columns(ctx, valid_rows(*ctx.state(), x.rows()), n, dice_gradient_sums<T>(x, dy, alpha, batch), to, to + n);
  });
}

void dice_backward(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor start, Tensor batch, Tensor d_sums,
                   Tensor dx) {
  check_dice("dice_backward dy", ctx, x, dy, batch);
  expect_dense_tensor("dice_backward", ctx.device(), start, {x.dim(1) + 1}, sum_dtype(x.dtype()));
  check_dice("dice_backward dx", ctx, x, dx, d_sums);
  HCTR_EXPECT(ctx.state(), "dice_backward() needs a step state");
  HCTR_ON_DEVICE(ctx, dice_backward(ctx, x, dy, alpha, start, batch, d_sums, dx));
}

void cpu::dice_backward(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor start, Tensor batch, Tensor d_sums,
                        Tensor dx) {
  dispatch_real(x.dtype(), [&]<class T>() {
    map_columns(ctx, dice_backward_of<T>(x, alpha, start, batch, d_sums, ctx.state()), dx.matrix<T>(),
                x.matrix<const T>(), dy.matrix<const T>());
  });
}

}  // namespace hctr::ops
