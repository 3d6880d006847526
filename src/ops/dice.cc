#include "ops/dice.h"

#include "ops/dice_rules.h"

namespace hctr::ops {
namespace {

DType wide(DType of) { return of == DType::f64 ? DType::f64 : DType::f32; }

void check(const char* what, Context& ctx, const Tensor& x, const Tensor& like, const Tensor& batch) {
  expect_on(what, ctx.device(), x);
  expect_on(what, ctx.device(), batch);
  HCTR_EXPECT(x.rank() == 2, what, " of a tensor of shape ", to_string(x.shape()));
  expect_shape(what, like, x.shape());
  expect_alike(what, {x, like});
  expect_shape(what, batch, {2, x.dim(1)});
  HCTR_EXPECT(batch.dtype() == wide(x.dtype()) && batch.dense(), what, ": statistics in ", name_of(batch.dtype()));
}

void check_sums(const char* what, Context& ctx, const Tensor& x, const Tensor& scratch, const Tensor& sums) {
  expect_on(what, ctx.device(), scratch);
  expect_shape(what, scratch, column_sums_scratch(x.dim(1)).shape);
  HCTR_EXPECT(scratch.dense(), what, ": scratch in strided rows");
  check(what, ctx, x, x, sums);
  HCTR_EXPECT(ctx.state(), what, " without a step's state");
}

template <class T>
Dice<T> dice_of(float alpha, const Tensor& batch) {
  return {static_cast<Acc<T>>(alpha), batch.data<const Acc<T>>(), batch.dim(1)};
}

}  // namespace

void dice_statistics(Context& ctx, Tensor x, float eps, Tensor scratch, Tensor batch) {
  check_sums("dice_statistics", ctx, x, scratch, batch);
  HCTR_ON_DEVICE(ctx, dice_statistics(ctx, x, eps, scratch, batch));
}

void cpu::dice_statistics(Context& ctx, Tensor x, float eps, Tensor, Tensor batch) {
  const int64_t n = x.dim(1), rows = valid_rows(*ctx.state(), x.rows());
  dispatch_real(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const SumsFromFirstRow<T> f{x.matrix<const T>()};
    A* to = batch.data<A>();
    sum_columns(ctx, rows, n, f, to, to + n);
    for (int64_t j = 0; j < n; ++j) {
      const Pair<A> moments = mean_and_variance(to[j], to[n + j], static_cast<A>(rows), f.shift(j));
      to[j] = moments.first;
      to[n + j] = 1 / std::sqrt(moments.second + static_cast<A>(eps));
    }
  });
}

void dice(Context& ctx, Tensor x, float alpha, Tensor batch, Tensor y) {
  check("dice", ctx, x, y, batch);
  HCTR_ON_DEVICE(ctx, dice(ctx, x, alpha, batch, y));
}

void cpu::dice(Context& ctx, Tensor x, float alpha, Tensor batch, Tensor y) {
  dispatch_real(x.dtype(), [&]<class T>() { map_columns(ctx, dice_of<T>(alpha, batch), y.matrix<T>(), x.matrix<const T>()); });
}

void dice_backward_sums(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor scratch, Tensor d_sums) {
  check("dice_backward_sums", ctx, x, dy, batch);
  check_sums("dice_backward_sums", ctx, x, scratch, d_sums);
  HCTR_ON_DEVICE(ctx, dice_backward_sums(ctx, x, dy, alpha, batch, scratch, d_sums));
}

void cpu::dice_backward_sums(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor, Tensor d_sums) {
  const int64_t n = x.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    Acc<T>* to = d_sums.data<Acc<T>>();
    sum_columns(ctx, valid_rows(*ctx.state(), x.rows()), n, DiceBackwardSums<T>{dice_of<T>(alpha, batch), x.matrix<const T>(), dy.matrix<const T>()}, to,
                to + n);
  });
}

void dice_backward(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor d_sums, Tensor dx) {
  check("dice_backward dy", ctx, x, dy, batch);
  check("dice_backward dx", ctx, x, dx, d_sums);
  HCTR_EXPECT(ctx.state(), "dice_backward without a step's state");
  HCTR_ON_DEVICE(ctx, dice_backward(ctx, x, dy, alpha, batch, d_sums, dx));
}

void cpu::dice_backward(Context& ctx, Tensor x, Tensor dy, float alpha, Tensor batch, Tensor d_sums, Tensor dx) {
  dispatch_real(x.dtype(), [&]<class T>() {
    map_columns(ctx, DiceBackward<T>{dice_of<T>(alpha, batch), d_sums.data<const Acc<T>>(), ctx.state(), x.rows()}, dx.matrix<T>(), x.matrix<const T>(),
                dy.matrix<const T>());
  });
}

}  // namespace hctr::ops
