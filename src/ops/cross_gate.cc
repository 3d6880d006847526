#include "ops/cross_gate.h"

#include "ops/element_loops.h"

namespace hctr::ops {
namespace {

/// Calls body(row, begin, end) over pieces of rows.
template <class Body>
void over(Context& ctx, const Tensor& like, const Body& body) {
  cpu::for_pieces(ctx, {like.rows(), like.row_elements()}, body);
}

}  // namespace

void cross_gate(Context& ctx, Tensor x, Tensor t, Tensor skip, Tensor y) {
  expect_on("cross_gate", ctx.device(), y);
  expect_alike("cross_gate", {x, t, skip, y});
  for (const Tensor& each : {x, t, skip}) expect_shape("cross_gate", each, y.shape());
  HCTR_ON_DEVICE(ctx, cross_gate(ctx, x, t, skip, y));
}

void cpu::cross_gate(Context& ctx, Tensor x, Tensor t, Tensor skip, Tensor y) {
  dispatch_real(y.dtype(), [&]<class T>() {
    const auto X = x.matrix<const T>(), F = t.matrix<const T>(), S = skip.matrix<const T>();
    over(ctx, y, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        y.matrix<T>().row(row)[c] = static_cast<T>(static_cast<Acc<T>>(X(row, c)) * static_cast<Acc<T>>(F(row, c)) +
                                                   static_cast<Acc<T>>(S(row, c)));
    });
  });
}

void cross_gate_backward(Context& ctx, Tensor x, Tensor t, Tensor dy, bool onto, Tensor dt, Tensor total) {
  expect_on("cross_gate_backward", ctx.device(), dy);
  expect_alike("cross_gate_backward", {x, t, dy, dt});
  for (const Tensor& each : {x, t, dt, total}) expect_shape("cross_gate_backward", each, dy.shape());
  HCTR_ON_DEVICE(ctx, cross_gate_backward(ctx, x, t, dy, onto, dt, total));
}

void cpu::cross_gate_backward(Context& ctx, Tensor x, Tensor t, Tensor dy, bool onto, Tensor dt, Tensor total) {
  dispatch_real(dy.dtype(), [&]<class T>() {
    const auto X = x.matrix<const T>(), F = t.matrix<const T>(), G = dy.matrix<const T>();
    over(ctx, dy, [&](int64_t row, int64_t begin, int64_t end) {
      auto* sum = total.matrix<Acc<T>>().row(row);
      for (int64_t c = begin; c < end; ++c) {
        const auto g = static_cast<Acc<T>>(G(row, c));
        dt.matrix<T>().row(row)[c] = static_cast<T>(g * static_cast<Acc<T>>(X(row, c)));
        sum[c] = (onto ? sum[c] : 0) + g * static_cast<Acc<T>>(F(row, c));
      }
    });
  });
}

void add_f32(Context& ctx, Tensor a, Tensor b, Tensor y) {
  expect_on("add_f32", ctx.device(), y);
  expect_alike("add_f32", {a, y});
  expect_shape("add_f32 a", a, y.shape());
  expect_shape("add_f32 b", b, y.shape());
  HCTR_ON_DEVICE(ctx, add_f32(ctx, a, b, y));
}

void cpu::add_f32(Context& ctx, Tensor a, Tensor b, Tensor y) {
  dispatch_real(y.dtype(), [&]<class T>() {
    over(ctx, y, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        y.matrix<T>().row(row)[c] =
            static_cast<T>(static_cast<Acc<T>>(a.matrix<const T>()(row, c)) + b.matrix<const Acc<T>>()(row, c));
    });
  });
}

}  // namespace hctr::ops
