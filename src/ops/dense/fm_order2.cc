#include "ops/dense/fm_order2.h"

namespace hctr::ops {
namespace {

void expect_slots(const char* what, Context& ctx, const Tensor& x, const Tensor& y) {
  expect_on(what, ctx.device(), x);
  expect_alike(what, {x, y});
  HCTR_EXPECT(x.rank() == 2 && y.rank() == 2 && x.dim(0) == y.dim(0) && y.dim(1) > 0 && x.dim(1) % y.dim(1) == 0, what,
              " of ", to_string(x.shape()), " to ", to_string(y.shape()));
}

constexpr int64_t kFmRows = 16;  // rows per task

}  // namespace

void fm_order2(Context& ctx, Tensor x, Tensor y) {
  expect_slots("fm_order2", ctx, x, y);
  HCTR_ON_DEVICE(ctx, fm_order2(ctx, x, y));
}

void cpu::fm_order2(Context& ctx, Tensor x, Tensor y) {
  const int64_t dim = y.dim(1), slots = x.dim(1) / dim;
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto X = x.view<const T, 2>();
    const auto Y = y.view<T, 2>();
    ctx.threads().parallel_for(x.dim(0), kFmRows, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t k = 0; k < dim; ++k) {
          Acc<T> sum = 0, squares = 0;
          for (int64_t s = 0; s < slots; ++s) {
            const auto v = static_cast<Acc<T>>(X(b, s * dim + k));
            sum += v;
            squares += v * v;
          }
          Y(b, k) = static_cast<T>((sum * sum - squares) / 2);
        }
    });
  });
}

void fm_order2_backward(Context& ctx, Tensor x, Tensor dy, Tensor dx) {
  expect_slots("fm_order2_backward", ctx, x, dy);
  expect_shape("fm_order2_backward dx", dx, x.shape());
  expect_alike("fm_order2_backward", {x, dx});
  HCTR_ON_DEVICE(ctx, fm_order2_backward(ctx, x, dy, dx));
}

void cpu::fm_order2_backward(Context& ctx, Tensor x, Tensor dy, Tensor dx) {
  const int64_t dim = dy.dim(1), slots = x.dim(1) / dim;
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto X = x.view<const T, 2>(), DY = dy.view<const T, 2>();
    const auto DX = dx.view<T, 2>();
    ctx.threads().parallel_for(x.dim(0), kFmRows, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        for (int64_t k = 0; k < dim; ++k) {
          Acc<T> sum = 0;
          for (int64_t s = 0; s < slots; ++s) sum += static_cast<Acc<T>>(X(b, s * dim + k));
          for (int64_t s = 0; s < slots; ++s)
            DX(b, s * dim + k) =
                static_cast<T>(static_cast<Acc<T>>(DY(b, k)) * (sum - static_cast<Acc<T>>(X(b, s * dim + k))));
        }
    });
  });
}

}  // namespace hctr::ops
