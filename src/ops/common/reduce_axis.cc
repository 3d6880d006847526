#include "ops/common/reduce_axis.h"

#include "ops/common/axis_rule.h"
#include "ops/common/element_loops.h"

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
                                                     : last;  // distance of adjacent summands, in elements
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

void sum_rows(Context& ctx, Tensor x, Tensor sums) {
  expect_on("sum_rows", ctx.device(), x);
  expect_on("sum_rows", ctx.device(), sums);
  HCTR_EXPECT(x.rank() == 2, "sum_rows: expected a matrix, found shape ", to_string(x.shape()));
  expect_shape("sum_rows sums", sums, {x.dim(1)});
  HCTR_EXPECT(sums.dense(), "sum_rows() needs dense sums, found strided sums");
  HCTR_EXPECT(sums.dtype() == x.dtype() || (sums.dtype() == DType::f32 && size_of(x.dtype()) == 2), "sum_rows of ",
              name_of(x.dtype()), " as ", name_of(sums.dtype()));
  HCTR_ON_DEVICE(ctx, sum_rows(ctx, x, sums));
}

void cpu::sum_rows(Context& ctx, Tensor x, Tensor sums) {
  const auto run = [&]<class T, class Out>() {
    const auto rows = x.view<const T, 2>();
    Out* to = sums.data<Out>();
    constexpr int64_t kColumns = 64,
                      // sums 128 rows, then adds that sum to the total, which reduces the rounding error and fixes the
                      // order
        kRows = 128;
    ctx.threads().parallel_for(rows.size(1), kColumns, [&](int64_t begin, int64_t end) {
      Acc<T> total[kColumns] = {};
      for (int64_t first = 0; first < rows.size(0); first += kRows) {
        Acc<T> sum[kColumns] = {};
        for (int64_t b = first; b < std::min(first + kRows, rows.size(0)); ++b)
          for (int64_t j = 0; j < end - begin; ++j) sum[j] += static_cast<Acc<T>>(rows.row(b)[begin + j]);
        for (int64_t j = 0; j < end - begin; ++j) total[j] += sum[j];
      }
      for (int64_t j = 0; j < end - begin; ++j) to[begin + j] = static_cast<Out>(total[j]);
    });
  };
  dispatch_real(x.dtype(), [&]<class T>() {
    if (sums.dtype() == x.dtype()) return run.template operator()<T, T>();
    if constexpr (sizeof(T) == 2) run.template operator()<T, float>();
  });
}

}  // namespace hctr::ops
