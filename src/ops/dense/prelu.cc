#include "ops/dense/prelu.h"

#include <vector>

#include "ops/common/element_loops.h"
#include "ops/common/row_parts.h"

namespace hctr::ops {
namespace {

void expect_slopes(const char* what, Context& ctx, const Tensor& x, const Tensor& alpha, const Tensor& y) {
  expect_on(what, ctx.device(), x);
  expect_alike(what, {x, alpha, y});
  expect_shape(what, y, x.shape());
  HCTR_EXPECT(alpha.rank() == 2 && alpha.dim(0) == 1 && alpha.dim(1) > 0 && x.row_elements() % alpha.dim(1) == 0, what,
              " of ", to_string(x.shape()), " with slopes ", to_string(alpha.shape()));
}

}  // namespace

TensorSpec prelu_scratch(int64_t rows, int64_t row_elements) {
  return flat_scratch((row_parts(rows) + 1) * row_elements);
}

void prelu(Context& ctx, Tensor x, Tensor alpha, Tensor y) {
  expect_slopes("prelu", ctx, x, alpha, y);
  HCTR_ON_DEVICE(ctx, prelu(ctx, x, alpha, y));
}

void cpu::prelu(Context& ctx, Tensor x, Tensor alpha, Tensor y) {
  const int64_t n = alpha.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    const T* slope = alpha.data<const T>();
    for_pieces(ctx, {x.rows(), x.row_elements()}, [&](int64_t row, int64_t begin, int64_t end) {
      const T* from = x.matrix<const T>().row(row);
      T* to = y.matrix<T>().row(row);
      for (int64_t c = begin; c < end; ++c) {
        const auto v = static_cast<Acc<T>>(from[c]);
        to[c] = static_cast<T>(v < 0 ? static_cast<Acc<T>>(slope[c % n]) * v : v);
      }
    });
  });
}

void prelu_backward(Context& ctx, Tensor x, Tensor alpha, Tensor dy, Tensor scratch, std::optional<Tensor> dx,
                    Tensor d_alpha) {
  expect_slopes("prelu_backward", ctx, x, alpha, dy);
  if (dx) expect_shape("prelu_backward dx", *dx, x.shape());
  expect_shape("prelu_backward d_alpha", d_alpha, alpha.shape());
  HCTR_ON_DEVICE(ctx, prelu_backward(ctx, x, alpha, dy, scratch, dx, d_alpha));
}

void cpu::prelu_backward(Context& ctx, Tensor x, Tensor alpha, Tensor dy, Tensor, std::optional<Tensor> dx,
                         Tensor d_alpha) {
  const int64_t n = alpha.dim(1), columns = x.row_elements();
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto X = x.matrix<const T>(), DY = dy.matrix<const T>();
    const T* slope = alpha.data<const T>();
    if (dx)
      for_pieces(ctx, {x.rows(), columns}, [&](int64_t row, int64_t begin, int64_t end) {
        T* to = dx->matrix<T>().row(row);
        for (int64_t c = begin; c < end; ++c) {
          const auto g = static_cast<Acc<T>>(DY(row, c));
          to[c] = static_cast<T>(static_cast<Acc<T>>(X(row, c)) < 0 ? static_cast<Acc<T>>(slope[c % n]) * g : g);
        }
      });
    ctx.threads().parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t f = begin; f < end; ++f) {
        double sum = 0;
        for (int64_t row = 0; row < x.rows(); ++row)
          for (int64_t c = f; c < columns; c += n)
            if (const auto v = static_cast<Acc<T>>(X(row, c)); v < 0)
              sum += static_cast<double>(v * static_cast<Acc<T>>(DY(row, c)));
        d_alpha.data<Acc<T>>()[f] = static_cast<Acc<T>>(sum);
      }
    });
  });
}

}  // namespace hctr::ops
