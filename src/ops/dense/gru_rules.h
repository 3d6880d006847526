// The formulas of ops/dense/gru.h, shared by every device: one unit of one row.
#pragma once

#include <cmath>

#include "core/device/tensor.h"
#include "ops/common/activation_rules.h"

namespace hctr::ops {

template <class T>
struct GruStep {
  using A = Acc<T>;
  View<const A, 2> of_input, of_state;
  const T* bias;
  View<const T, 2> before;
  View<A, 2> kept;
  View<T, 2> h;

  HCTR_HD void operator()(int64_t row, int64_t j) const {
    const int64_t units = h.size(1);
    const A *x = of_input.row(row), *s = of_state.row(row);
    const auto input = [&](int64_t gate) { return x[gate * units + j] + static_cast<A>(bias[gate * units + j]); };
    const Sigmoid sigmoid{0};
    const A r = sigmoid.forward(input(0) + s[j]), z = sigmoid.forward(input(1) + s[units + j]);
    const A of_state_n = s[2 * units + j], n = std::tanh(input(2) + r * of_state_n);
    A* to = kept.row(row);
    to[j] = r;
    to[units + j] = z;
    to[2 * units + j] = n;
    to[3 * units + j] = of_state_n;
    h.row(row)[j] = static_cast<T>((1 - z) * n + z * static_cast<A>(before.row(row)[j]));
  }
};

template <class T>
struct GruStepBackward {
  using A = Acc<T>;
  View<const A, 2> kept;
  View<const T, 2> before, dh;
  View<const A, 2> through;
  View<A, 2> direct;
  View<T, 2> d_of_input, d_of_state;

  HCTR_HD void operator()(int64_t row, int64_t j) const {
    const int64_t units = before.size(1);
    const A* from = kept.row(row);
    const A r = from[j], z = from[units + j], n = from[2 * units + j], of_state_n = from[3 * units + j];
    const A d = static_cast<A>(dh.row(row)[j]) + through.row(row)[j] + direct.row(row)[j];
    const A d_n = d * (1 - z) * (1 - n * n);  // gradient of the input of tanh
    const A d_z = d * (static_cast<A>(before.row(row)[j]) - n) * z * (1 - z);
    const A d_r = d_n * of_state_n * r * (1 - r);
    direct.row(row)[j] = d * z;
    T *x = d_of_input.row(row), *s = d_of_state.row(row);
    x[j] = s[j] = static_cast<T>(d_r);
    x[units + j] = s[units + j] = static_cast<T>(d_z);
    x[2 * units + j] = static_cast<T>(d_n);
    s[2 * units + j] = static_cast<T>(d_n * r);
  }
};

}  // namespace hctr::ops
