#include "ops/dense/gru.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/op_test.h"

namespace hctr::test {
namespace {

constexpr Type kWide = Type::wide;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Tensor wide_scratch(Rig& t, const std::string& name, const Shape& shape) {
  return t.scratch(name, TensorSpec(t.dtype() == DType::f64 ? DType::f64 : DType::f32, shape));
}

OP_TEST(GruStep) {
  const auto sizes = [&](const char* name, int64_t batch, int64_t units) {
    row(name, {{"x", {batch, 3 * units}, -2, 2, kWide},
               {"s", {batch, 3 * units}, -2, 2, kWide},
               {"bias", {3 * units}},
               {"before", {batch, units}}});
  };
  sizes("typical", 64, 32);
  sizes("odd sizes", 7, 5);
  sizes("one unit", 33, 1);
  sizes("no rows", 0, 4);
  forward([](Rig& t) {
    const Shape shape = t["before"].shape();
    ops::gru_step(t.ctx, t["x"], t["s"], t["bias"], t["before"], wide_scratch(t, "kept", {shape[0], 4 * shape[1]}),
                  t.out("h", shape));
  });
  expected([](const auto& t) {
    const size_t batch = t.size("before", 0), n = t.size("before", 1);
    const auto x = t["x"], s = t["s"], bias = t["bias"], before = t["before"];
    std::vector<double> h;
    for (size_t b = 0; b < batch; ++b)
      for (size_t j = 0; j < n; ++j) {
        const size_t at = 3 * n * b + j;
        const double r = sigmoid(x[at] + bias[j] + s[at]), z = sigmoid(x[at + n] + bias[n + j] + s[at + n]);
        const double state = std::tanh(x[at + 2 * n] + bias[2 * n + j] + r * s[at + 2 * n]);
        h.push_back((1 - z) * state + z * before[n * b + j]);
      }
    t.expect("h", h);
  });
}

// test/unit/net/layers/gru_test.cc compares the gradients with central differences.
OP_TEST(GruStepBackward) {
  const auto sizes = [&](const char* name, int64_t batch, int64_t units) {
    row(name, {{"kept", {batch, 4 * units}, 0.1, 0.9, kWide},
               {"before", {batch, units}},
               {"dh", {batch, units}},
               {"through", {batch, units}, -1, 1, kWide},
               {"direct", {batch, units}, -1, 1, kWide}});
  };
  sizes("typical", 64, 32);
  sizes("odd sizes", 7, 5);
  sizes("no rows", 0, 4);
  forward([](Rig& t) {
    const Shape gates{t["before"].dim(0), 3 * t["before"].dim(1)};
    ops::gru_step_backward(t.ctx, t["kept"], t["before"], t["dh"], t["through"], t.inout("direct"), t.out("dx", gates),
                           t.out("ds", gates));
  });
}

}  // namespace
}  // namespace hctr::test
