#include "ops/dense/multiply.h"

#include "ops/common/element_loops.h"
#include "ops/dense/multiply_rules.h"

namespace hctr::ops {
namespace {

void expect_factors(const char* what, Context& ctx, const std::vector<Tensor>& x, const Tensor& y) {
  HCTR_EXPECT(!x.empty() && x.size() <= kMostFactors, what, " of ", x.size(), " tensors");
  expect_on(what, ctx.device(), y);
  for (const Tensor& t : x) {
    expect_shape(what, t, y.shape());
    expect_alike(what, {t, y});
  }
}

}  // namespace

void multiply(Context& ctx, const std::vector<Tensor>& x, Tensor y) {
  expect_factors("multiply", ctx, x, y);
  HCTR_ON_DEVICE(ctx, multiply(ctx, x, y));
}

void cpu::multiply(Context& ctx, const std::vector<Tensor>& x, Tensor y) {
  dispatch_real(y.dtype(), [&]<class T>() {
    for_pieces(ctx, {y.rows(), y.row_elements()}, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        Acc<T> product = 1;
        for (const Tensor& factor : x) product *= static_cast<Acc<T>>(factor.matrix<const T>().row(row)[c]);
        y.matrix<T>().row(row)[c] = static_cast<T>(product);
      }
    });
  });
}

void multiply_backward(Context& ctx, const std::vector<Tensor>& x, Tensor dy,
                       const std::vector<std::optional<Tensor>>& dx) {
  expect_factors("multiply_backward", ctx, x, dy);
  HCTR_EXPECT(dx.size() == x.size(), dx.size(), " gradients of ", x.size(), " factors");
  for (const auto& d : dx)
    if (d) {
      expect_shape("multiply_backward dx", *d, dy.shape());
      expect_alike("multiply_backward dx", {*d, dy});
    }
  HCTR_ON_DEVICE(ctx, multiply_backward(ctx, x, dy, dx));
}

void cpu::multiply_backward(Context& ctx, const std::vector<Tensor>& x, Tensor dy,
                            const std::vector<std::optional<Tensor>>& dx) {
  dispatch_real(dy.dtype(), [&]<class T>() {
    for_pieces(ctx, {dy.rows(), dy.row_elements()}, [&](int64_t row, int64_t begin, int64_t end) {
      const T* gradient = dy.matrix<const T>().row(row);
      for (size_t i = 0; i < x.size(); ++i) {
        if (!dx[i]) continue;
        T* out = dx[i]->matrix<T>().row(row);
        for (int64_t c = begin; c < end; ++c) {
          Acc<T> product = static_cast<Acc<T>>(gradient[c]);
          for (size_t j = 0; j < x.size(); ++j)
            if (j != i) product *= static_cast<Acc<T>>(x[j].matrix<const T>().row(row)[c]);
          out[c] = static_cast<T>(product);
        }
      }
    });
  });
}

void subtract(Context& ctx, Tensor a, Tensor b, Tensor y) {
  expect_on("subtract", ctx.device(), y);
  expect_shape("subtract a", a, y.shape());
  expect_shape("subtract b", b, y.shape());
  expect_alike("subtract", {a, b, y});
  HCTR_ON_DEVICE(ctx, subtract(ctx, a, b, y));
}

void cpu::subtract(Context& ctx, Tensor a, Tensor b, Tensor y) {
  const Extent extent = extent_of({y, a, b});
  dispatch_real(y.dtype(), [&]<class T>() {
    map(ctx, Minus(), rows_of<T>(y, extent), rows_of<const T>(a, extent), rows_of<const T>(b, extent));
  });
}

void negate(Context& ctx, Tensor x, Tensor y) {
  expect_on("negate", ctx.device(), y);
  expect_shape("negate x", x, y.shape());
  expect_alike("negate", {x, y});
  HCTR_ON_DEVICE(ctx, negate(ctx, x, y));
}

void cpu::negate(Context& ctx, Tensor x, Tensor y) {
  const Extent extent = extent_of({y, x});
  dispatch_real(y.dtype(),
                [&]<class T>() { map(ctx, Negative(), rows_of<T>(y, extent), rows_of<const T>(x, extent)); });
}

void zero_where_zero(Context& ctx, Tensor x, Tensor y) {
  expect_on("zero_where_zero", ctx.device(), y);
  expect_shape("zero_where_zero x", x, y.shape());
  expect_alike("zero_where_zero", {x, y});
  HCTR_ON_DEVICE(ctx, zero_where_zero(ctx, x, y));
}

void cpu::zero_where_zero(Context& ctx, Tensor x, Tensor y) {
  const Extent extent = extent_of({y, x});
  dispatch_real(y.dtype(), [&]<class T>() {
    map(ctx, UnlessZero(), rows_of<T>(y, extent), rows_of<const T>(x, extent), rows_of<const T>(y, extent));
  });
}

}  // namespace hctr::ops
