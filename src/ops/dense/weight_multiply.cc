#include "ops/dense/weight_multiply.h"

#include <vector>

#include "ops/common/element_loops.h"
#include "ops/common/row_parts.h"

namespace hctr::ops {
namespace {

void expect_product(const char* what, Context& ctx, const Tensor& x, const Tensor& w, const Tensor& y) {
  expect_on(what, ctx.device(), x);
  expect_alike(what, {x, w, y});
  HCTR_EXPECT(x.rank() == 2 && w.rank() == 2 && w.dense() && x.dim(1) == w.dim(0), what, " of ", to_string(x.shape()),
              " and ", to_string(w.shape()));
  expect_shape(what, y, {x.dim(0), w.dim(0) * w.dim(1)});
}

}  // namespace

TensorSpec weight_multiply_scratch(int64_t batch, int64_t slots, int64_t dim) {
  return flat_scratch(row_parts(batch) * slots * dim);
}

void weight_multiply(Context& ctx, Tensor x, Tensor w, Tensor y) {
  expect_product("weight_multiply", ctx, x, w, y);
  HCTR_ON_DEVICE(ctx, weight_multiply(ctx, x, w, y));
}

void cpu::weight_multiply(Context& ctx, Tensor x, Tensor w, Tensor y) {
  const int64_t dim = w.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto X = x.view<const T, 2>();
    const auto Y = y.view<T, 2>();
    const T* W = w.data<const T>();
    for_pieces(ctx, {y.dim(0), y.dim(1)}, [&](int64_t b, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        Y(b, c) = static_cast<T>(static_cast<Acc<T>>(X(b, c / dim)) * static_cast<Acc<T>>(W[c]));
    });
  });
}

void weight_multiply_backward(Context& ctx, Tensor x, Tensor w, Tensor dy, Tensor scratch, std::optional<Tensor> dx,
                              Tensor dw) {
  expect_product("weight_multiply_backward", ctx, x, w, dy);
  if (dx) expect_shape("weight_multiply_backward dx", *dx, x.shape());
  expect_shape("weight_multiply_backward dw", dw, w.shape());
  HCTR_EXPECT(dw.dense(), "weight_multiply_backward() needs a dense dw, found strided rows");
  HCTR_ON_DEVICE(ctx, weight_multiply_backward(ctx, x, w, dy, scratch, dx, dw));
}

void cpu::weight_multiply_backward(Context& ctx, Tensor x, Tensor w, Tensor dy, Tensor, std::optional<Tensor> dx,
                                   Tensor dw) {
  const int64_t batch = x.dim(0), slots = x.dim(1), dim = w.dim(1);
  dispatch_real(x.dtype(), [&]<class T>() {
    const auto X = x.view<const T, 2>(), DY = dy.view<const T, 2>();
    const T* W = w.data<const T>();
    if (dx) {
      const auto DX = dx->view<T, 2>();
      ctx.threads().parallel_for(batch, 16, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          for (int64_t s = 0; s < slots; ++s) {
            Acc<T> sum = 0;
            for (int64_t k = 0; k < dim; ++k)
              sum += static_cast<Acc<T>>(DY(b, s * dim + k)) * static_cast<Acc<T>>(W[s * dim + k]);
            DX(b, s) = static_cast<T>(sum);
          }
      });
    }
    auto* DW = dw.data<Acc<T>>();
    constexpr int64_t kColumns = 64;
    ctx.threads().parallel_for(slots * dim, kColumns, [&](int64_t begin, int64_t end) {
      double sum[kColumns] = {};
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t c = begin; c < end; ++c)
          sum[c - begin] += static_cast<double>(static_cast<Acc<T>>(DY(b, c)) * static_cast<Acc<T>>(X(b, c / dim)));
      for (int64_t c = begin; c < end; ++c) DW[c] = static_cast<Acc<T>>(sum[c - begin]);
    });
  });
}

}  // namespace hctr::ops
