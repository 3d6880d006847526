#include "ops/reduce_axis.h"

#include "ops/axis_rule.h"
#include "ops/element_loops.h"

namespace hctr::ops {
namespace {

void expect_axis(const char* what, Context& ctx, const Tensor& whole, int axis, const Tensor& sum) {
  expect_on(what, ctx.device(), whole);
  expect_alike(what, {whole, sum});
  HCTR_EXPECT((whole.rank() == 2 || whole.rank() == 3) && axis >= 0 && axis < whole.rank(), what, " along axis ", axis,
              " of ", to_string(whole.shape()));
  Shape expected = whole.shape();
  expected[axis] = 1;
  expect_shape(what, sum, expected);
}

}  // namespace

void sum_axis(Context& ctx, Tensor x, int axis, float factor, Tensor y) {
  expect_axis("sum_axis", ctx, x, axis, y);
  HCTR_ON_DEVICE(ctx, sum_axis(ctx, x, axis, factor, y));
}

void cpu::sum_axis(Context& ctx, Tensor x, int axis, float factor, Tensor y) {
  const int64_t n = x.dim(axis), last = x.dim(x.rank() - 1);
  const int64_t item_stride = axis == 0              ? x.row_stride()
                              : axis == x.rank() - 1 ? 1
                                                     : last;  // from one term to the next
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto from = x.matrix<const T>();
    const auto to = y.matrix<T>();
    for_pieces(
        ctx, {y.rows(), y.row_elements()},
        [&](int64_t row, int64_t begin, int64_t end) {
          for (int64_t c = begin; c < end; ++c) {
            const T* first = from.row(row) + (axis == x.rank() - 1 && axis > 0 ? c * last : c);
            Acc<T> sum = 0;
            for (int64_t i = 0; i < n; ++i) sum += static_cast<Acc<T>>(first[i * item_stride]);
            to.row(row)[c] = static_cast<T>(factor * sum);
          }
        },
        256);
  });
}

void spread_axis(Context& ctx, Tensor dy, int axis, float factor, Tensor dx) {
  expect_axis("spread_axis", ctx, dx, axis, dy);
  HCTR_ON_DEVICE(ctx, spread_axis(ctx, dy, axis, factor, dx));
}

void cpu::spread_axis(Context& ctx, Tensor dy, int axis, float factor, Tensor dx) {
  const AxisRule rule(dx.shape(), axis);
  dispatch_real(dx.dtype(), [&]<class T>() {
    const auto from = dy.matrix<const T>();
    const auto to = dx.matrix<T>();
    for_pieces(ctx, {dx.rows(), dx.row_elements()}, [&](int64_t row, int64_t begin, int64_t end) {
      const T* source = from.row(rule.over_rows ? 0 : row);
      for (int64_t c = begin; c < end; ++c)
        to.row(row)[c] = static_cast<T>(factor * static_cast<Acc<T>>(source[rule.column(c)]));
    });
  });
}

}  // namespace hctr::ops
