// The formulas of ops/common/activation.h, one struct each, shared by every device: y = f(x), and dx = f'(x) dy.
#pragma once

#include <cmath>

#include "core/base/platform.h"
#include "ops/common/activation.h"

namespace hctr::ops {

struct Relu {
  float alpha;
  template <class A>
  HCTR_HD A forward(A x) const {
    return x < 0 ? A(0) : x;
  }  // a NaN input stays NaN
  template <class A>
  HCTR_HD A backward(A x, A dy) const {
    return x > 0 ? dy : A(0);
  }
};

struct Elu {
  float alpha;
  template <class A>
  HCTR_HD A forward(A x) const {
    return x < 0 ? alpha * std::expm1(x) : x;
  }
  template <class A>
  HCTR_HD A backward(A x, A dy) const {
    return x < 0 ? alpha * std::exp(x) * dy : dy;
  }
};

struct LeakyRelu {
  float alpha;
  template <class A>
  HCTR_HD A forward(A x) const {
    return x < 0 ? alpha * x : x;
  }
  template <class A>
  HCTR_HD A backward(A x, A dy) const {
    return x < 0 ? alpha * dy : dy;
  }
};

struct Sigmoid {
  float alpha;
  template <class A>
  HCTR_HD static A value(A x) {
    return 1 / (1 + std::exp(-x));
  }
  template <class A>
  HCTR_HD A forward(A x) const {
    return value(x);
  }
  template <class A>
  HCTR_HD A backward(A x, A dy) const {
    const A e = std::exp(x < 0 ? x : -x);  // y (1 - y) in a form without the cancellation of 1 - y
    return e / ((1 + e) * (1 + e)) * dy;
  }
};

struct Tanh {
  float alpha;
  template <class A>
  HCTR_HD A forward(A x) const {
    return std::tanh(x);
  }
  template <class A>
  HCTR_HD A backward(A x, A dy) const {
    const A e = std::exp(2 * (x < 0 ? x : -x));  // 1 - y^2 in a form without cancellation
    return 4 * e / ((1 + e) * (1 + e)) * dy;
  }
};

struct Gelu {
  float alpha;
  template <class A>
  HCTR_HD static A below(A x) {
    return A(0.5) * std::erfc(x * A(-0.70710678118654752));
  }  // Phi(x)
  template <class A>
  HCTR_HD A forward(A x) const {
    return x * below(x);
  }
  template <class A>
  HCTR_HD A backward(A x, A dy) const {
    const A density = A(0.39894228040143268) * std::exp(x * x * A(-0.5));
    return (below(x) + x * density) * dy;
  }
};

struct Silu {
  float alpha;
  template <class A>
  HCTR_HD A forward(A x) const {
    return x * Sigmoid::value(x);
  }
  template <class A>
  HCTR_HD A backward(A x, A dy) const {
    return Sigmoid::value(x) * (1 + x * Sigmoid::value(-x)) * dy;
  }
};

/// Wraps Rule::forward as a functor for element-wise loops.
template <class Rule>
struct ForwardOf {
  Rule rule;
  template <class A>
  HCTR_HD A operator()(A x) const {
    return rule.forward(x);
  }
};
template <class Rule>
struct BackwardOf {
  Rule rule;
  template <class A>
  HCTR_HD A operator()(A x, A dy) const {
    return rule.backward(x, dy);
  }
};

/// Calls body.operator()<Rule>() with the rule of `kind`.
template <class Body>
void dispatch_activation(Activation::Kind kind, Body&& body) {
  switch (kind) {
    case Activation::Kind::relu:
      return body.template operator()<Relu>();
    case Activation::Kind::elu:
      return body.template operator()<Elu>();
    case Activation::Kind::leaky_relu:
      return body.template operator()<LeakyRelu>();
    case Activation::Kind::sigmoid:
      return body.template operator()<Sigmoid>();
    case Activation::Kind::tanh:
      return body.template operator()<Tanh>();
    case Activation::Kind::gelu:
      return body.template operator()<Gelu>();
    case Activation::Kind::silu:
      return body.template operator()<Silu>();
  }
}

}  // namespace hctr::ops
