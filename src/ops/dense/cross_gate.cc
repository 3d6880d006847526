#include "ops/dense/cross_gate.h"

#include <utility>

#include "ops/common/element_loops.h"
#include "ops/common/reduce_axis.h"
#include "ops/dense/multi_cross.h"
#include "ops/gemm/bias_gradient_parts.h"

namespace hctr::ops {
namespace {

/// Calls body(row, begin, end) in parallel for pieces of the rows of `like`.
template <class Body>
void over(Context& ctx, const Tensor& like, const Body& body) {
  cpu::for_pieces(ctx, {like.rows(), like.row_elements()}, body);
}

void expect_gates(const char* what, const CrossGates& gates, std::vector<Tensor> all) {
  HCTR_EXPECT(!gates.t.empty() && gates.t.size() == gates.d_y.size() && gates.t.size() <= kMostCrossLayers, what,
              " of ", gates.t.size(), " layers with ", gates.d_y.size(), " gradients");
  for (const auto* each : {&gates.t, &gates.d_y}) all.insert(all.end(), each->begin(), each->end());
  for (const Tensor& each : all) {
    expect_alike(what, {all[0], each});
    expect_shape(what, each, all[0].shape());
  }
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

void cross_gate_backward(Context& ctx, Tensor x, Tensor d_y, Tensor d_t, Tensor d_bias, Tensor scratch) {
  expect_bias_gradient("cross_gate_backward", ctx, d_t, d_bias, scratch);
  expect_alike("cross_gate_backward", {x, d_y, d_t});
  for (const Tensor& each : {x, d_y}) expect_shape("cross_gate_backward", each, d_t.shape());
  HCTR_ON_DEVICE(ctx, cross_gate_backward(ctx, x, d_y, d_t, d_bias, scratch));
}

void cpu::cross_gate_backward(Context& ctx, Tensor x, Tensor d_y, Tensor d_t, Tensor d_bias, Tensor) {
  dispatch_real(d_t.dtype(), [&]<class T>() {
    const auto X = x.matrix<const T>(), G = d_y.matrix<const T>();
    over(ctx, d_t, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        d_t.matrix<T>().row(row)[c] = static_cast<T>(static_cast<Acc<T>>(G(row, c)) * static_cast<Acc<T>>(X(row, c)));
    });
  });
  cpu::sum_rows(ctx, d_t, d_bias);
}

void first_cross_gate_backward(Context& ctx, Tensor x, CrossGates gates, Tensor d_t, Tensor d_bias, Tensor scratch,
                               Tensor d_x) {
  constexpr const char* kWhat = "first_cross_gate_backward";
  expect_bias_gradient(kWhat, ctx, d_t, d_bias, scratch);
  expect_gates(kWhat, gates, {x, d_t, d_x});
  HCTR_ON_DEVICE(ctx, first_cross_gate_backward(ctx, x, gates, d_t, d_bias, scratch, d_x));
}

void cpu::first_cross_gate_backward(Context& ctx, Tensor x, CrossGates gates, Tensor d_t, Tensor d_bias, Tensor scratch,
                                    Tensor d_x) {
  cpu::cross_gate_backward(ctx, x, gates.d_y[0], d_t, d_bias, scratch);
  cpu::cross_gates_gradient(ctx, std::move(gates), d_x);
}

void cross_gates_gradient(Context& ctx, CrossGates gates, Tensor d_x) {
  expect_on("cross_gates_gradient", ctx.device(), d_x);
  expect_gates("cross_gates_gradient", gates, {d_x});
  HCTR_ON_DEVICE(ctx, cross_gates_gradient(ctx, gates, d_x));
}

void cpu::cross_gates_gradient(Context& ctx, CrossGates gates, Tensor d_x) {
  dispatch_real(d_x.dtype(), [&]<class T>() {
    over(ctx, d_x, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const auto at = [&](const Tensor& t) { return static_cast<Acc<T>>(t.matrix<const T>()(row, c)); };
        Acc<T> sum = 0;
        for (size_t l = gates.t.size(); l-- > 0;) sum += at(gates.d_y[l]) * at(gates.t[l]);
        d_x.matrix<T>().row(row)[c] = static_cast<T>(at(gates.d_y[0]) + sum);
      }
    });
  });
}

}  // namespace hctr::ops
