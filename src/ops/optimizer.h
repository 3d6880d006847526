// The update rules, each one formula that dense weights and embedding rows share on every device.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "device/op.h"

namespace hctr::ops {

/// Which rule with which constants. The learning rate and the step come with each batch (StepState).
struct Optimizer {
  enum class Kind { sgd, adam };
  Kind kind = Kind::adam;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-7f;
  float rate_factor = 1;  ///< this optimizer's rate over the step's: an embedding may have a rate of its own

  /// State tensors beside the weights: adam has m and v, sgd none. All start at 0.
  int states() const { return kind == Kind::adam ? 2 : 0; }
};

/// What a rule needs in one step besides weight, gradient and state. Worked out once per step, not per element.
struct UpdateScalars {
  float rate = 0;           ///< adam: lr * sqrt(1 - beta2^t) / (1 - beta1^t); sgd: lr
  float gradient_scale = 1; ///< 1 / loss_scale
};

/// t = state.step + 1. In double, rounded once, so that devices agree.
HCTR_HD inline UpdateScalars update_scalars(const Optimizer& optimizer, const StepState& state) {
  const float rate = state.learning_rate * optimizer.rate_factor;
  UpdateScalars scalars{rate, 1.0f / state.loss_scale};
  if (optimizer.kind == Optimizer::Kind::adam) {
    const double t = static_cast<double>(state.step) + 1.0;
    const double correction2 = 1.0 - pow(static_cast<double>(optimizer.beta2), t);
    const double correction1 = 1.0 - pow(static_cast<double>(optimizer.beta1), t);
    scalars.rate = static_cast<float>(static_cast<double>(rate) * sqrt(correction2) / correction1);
  }
  return scalars;
}

/// w -= lr * g.
struct SgdRule {
  HCTR_HD static void update(const Optimizer&, const UpdateScalars& s, float g, float& w, float*) { w -= s.rate * g; }
};

/// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w -= rate * m / (sqrt(v) + eps).
/// Source: D. Kingma and J. Ba, "Adam", ICLR 2015, section 2 (the efficient form at its end).
struct AdamRule {
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    state[0] = o.beta1 * state[0] + (1.0f - o.beta1) * g;
    state[1] = o.beta2 * state[1] + (1.0f - o.beta2) * g * g;
    w -= s.rate * state[0] / (sqrtf(state[1]) + o.epsilon);
  }
};

/// Calls body.operator()<Rule, number of states>().
template <class Body>
void dispatch_rule(Optimizer::Kind kind, Body&& body) {
  switch (kind) {
    case Optimizer::Kind::sgd: return body.template operator()<SgdRule, 0>();
    case Optimizer::Kind::adam: return body.template operator()<AdamRule, 2>();
  }
}

/// One step on dense weights. Shapes: w, g and every state alike and dense. Dtypes: f32. Needs ctx.state().
HCTR_OP(void update_dense(Context&, const Optimizer&, Tensor g, Tensor w, const std::vector<Tensor>& states))

}  // namespace hctr::ops
