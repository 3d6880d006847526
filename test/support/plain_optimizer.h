// The update rules of the optimizers as in their papers, for a single weight and in double: the reference for tests of
// dense weights and tables.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "config/sections/optimizer_catalog.h"
#include "ops/optimizer/optimizer_rules.h"

namespace hctr::test {

/// Examples of every kind of optimizer, with constants large enough that each term of the rule matters.
inline std::vector<ops::Optimizer> every_rule() {
  using Kind = ops::Optimizer::Kind;
  return {{.kind = Kind::sgd},
          {.kind = Kind::momentum_sgd, .momentum = 0.7f},
          {.kind = Kind::momentum_sgd, .momentum = 0},
          {.kind = Kind::nesterov, .momentum = 0.7f},
          {.kind = Kind::adagrad, .epsilon = 1e-3f, .initial = 0.25f},
          {.kind = Kind::adagrad, .epsilon = 1e-2f},
          {.kind = Kind::rmsprop, .epsilon = 1e-3f, .smoothing = 0.8f},
          {.kind = Kind::ftrl, .beta = 0.5f, .lambda1 = 0.02f, .lambda2 = 0.3f},
          {.kind = Kind::ftrl, .beta = 0},
          {.kind = Kind::adam, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f},
          {.kind = Kind::adamw, .beta1 = 0.8f, .beta2 = 0.9f, .epsilon = 1e-3f, .weight_decay = 0.5f}};
}

/// An example optimizer of `kind`, with constants large enough for short runs.
inline ops::Optimizer example_rule(ops::Optimizer::Kind kind) {
  return {.kind = kind,
          .beta1 = 0.8f,
          .beta2 = 0.9f,
          .epsilon = 1e-3f,
          .momentum = 0.5f,
          .initial = 0.1f,
          .weight_decay = 0.1f};
}

inline std::string name_of_rule(const ops::Optimizer& o) {
  std::string name = optimizer_type(o.kind).name;
  if (o.row_wise) name += " row-wise";
  return name + " mu " + std::to_string(o.momentum) + " initial " + std::to_string(o.initial) + " l1 " +
         std::to_string(o.lambda1);
}

/// One weight and its optimizer states (m and v, or n and z, ...) in the order of the program.
struct PlainWeight {
  double w = 0, state[2] = {};
  double inverse_rate = 0;  // FTRL: 1 / learning rate of the previous step, as in algorithm 1 of the paper

  PlainWeight() = default;
  PlainWeight(const ops::Optimizer& o, double weight) : w(weight) {
    if (o.kind == ops::Optimizer::Kind::adagrad || o.kind == ops::Optimizer::Kind::keras_adagrad)
      state[0] = static_cast<double>(o.initial);
    // The initial z for which the FTRL rule yields this weight without any gradient.
    if (o.kind == ops::Optimizer::Kind::ftrl && w != 0)
      state[1] = -w * static_cast<double>(o.lambda2) - std::copysign(static_cast<double>(o.lambda1), w);
  }
};

/// Applies update number t (from 1) with gradient g and learning rate lr.
inline void plain_update(const ops::Optimizer& o, PlainWeight& x, double g, double lr, int64_t t) {
  using Kind = ops::Optimizer::Kind;
  const double b1 = static_cast<double>(o.beta1), b2 = static_cast<double>(o.beta2),
               eps = static_cast<double>(o.epsilon), mu = static_cast<double>(o.momentum),
               l1 = static_cast<double>(o.lambda1), l2 = static_cast<double>(o.lambda2),
               smoothing = static_cast<double>(o.smoothing);
  double &a = x.state[0], &b = x.state[1];
  switch (o.kind) {
    case Kind::sgd:
      x.w -= lr * g;
      break;
    case Kind::momentum_sgd:
      a = mu * a - lr * g;
      x.w += a;
      break;
    case Kind::nesterov: {
      const double next = mu * a - lr * g;
      x.w += -mu * a + (1 + mu) * next;
      a = next;
      break;
    }
    case Kind::adagrad:
      a += g * g;
      x.w -= lr * g / (std::sqrt(a) + eps);
      break;
    case Kind::rmsprop:
      a = smoothing * a + (1 - smoothing) * g * g;
      x.w -= lr * g / (std::sqrt(a) + eps);
      break;
    case Kind::ftrl: {
      const double n = a + g * g, inverse = (static_cast<double>(o.beta) + std::sqrt(n)) / lr;
      if (inverse + l2 == 0) break;
      b += g - (inverse - x.inverse_rate) * x.w;
      a = n;
      x.inverse_rate = inverse;
      x.w = std::abs(b) <= l1 ? 0 : (std::copysign(l1, b) - b) / (inverse + l2);
      break;
    }
    case Kind::torch_momentum:
    case Kind::torch_nesterov:
      a = mu * a + g;
      x.w -= lr * (o.kind == Kind::torch_momentum ? a : g + mu * a);
      break;
    case Kind::keras_adagrad:
      a += g * g;
      x.w -= lr * g / std::sqrt(a + eps);
      break;
    case Kind::keras_rmsprop:
      a = smoothing * a + (1 - smoothing) * g * g;
      x.w -= lr * g / std::sqrt(a + eps);
      break;
    case Kind::torch_adamw:
      x.w *= 1 - lr * static_cast<double>(o.weight_decay);
      [[fallthrough]];
    case Kind::torch_adam: {
      a = b1 * a + (1 - b1) * g;
      b = b2 * b + (1 - b2) * g * g;
      const double m = a / (1 - std::pow(b1, static_cast<double>(t))),
                   v = b / (1 - std::pow(b2, static_cast<double>(t)));
      x.w -= lr * m / (std::sqrt(v) + eps);
      break;
    }
    case Kind::torch_adamax:
    case Kind::adamax: {
      const bool inside = o.kind == Kind::torch_adamax;
      a = b1 * a + (1 - b1) * g;
      b = std::max(b2 * b, std::abs(g) + (inside ? eps : 0));
      x.w -= lr / (1 - std::pow(b1, static_cast<double>(t))) * a / (b + (inside ? 0 : eps));
      break;
    }
    case Kind::adadelta: {
      a = smoothing * a + (1 - smoothing) * g * g;
      const double step = std::sqrt(b + eps) / std::sqrt(a + eps) * g;
      b = smoothing * b + (1 - smoothing) * step * step;
      x.w -= lr * step;
      break;
    }
    case Kind::adamw:
      x.w -= lr * static_cast<double>(o.weight_decay) * x.w;
      [[fallthrough]];
    case Kind::adam: {
      a = b1 * a + (1 - b1) * g;
      b = b2 * b + (1 - b2) * g * g;
      const double tt = static_cast<double>(t);
      x.w -= lr * std::sqrt(1 - std::pow(b2, tt)) / (1 - std::pow(b1, tt)) * a / (std::sqrt(b) + eps);
      break;
    }
  }
}

}  // namespace hctr::test
