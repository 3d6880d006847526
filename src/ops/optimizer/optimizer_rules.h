// The update rules of optimizers. Dense weights and embedding rows share one formula per rule on every device.
// docs/add_an_optimizer.md says how to add a rule.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/platform.h"
#include "core/base/step_state.h"

namespace hctr::ops {

inline constexpr float kLargestFloat = std::numeric_limits<float>::max();

/// Maximum number of states (moments, sums of squares, ...) per weight.
inline constexpr int kMostStates = 2;

/// Scales and clips a gradient before a rule reads it: g / loss_scale, clipped to +-`most`. NaN is unchanged.
struct GradientScale {
  float factor = 1, most = std::numeric_limits<float>::infinity();
};
HCTR_HD inline float operator*(float g, const GradientScale& scale) {
  const float scaled = g * scale.factor;
  return scaled > scale.most ? scale.most : scaled < -scale.most ? -scale.most : scaled;
}

struct UpdateScalars;

/// A rule and its constants; the defaults are those of a config. Learning rate and step are in StepState.
struct Optimizer {
  enum class Kind {
    sgd,
    momentum_sgd,
    nesterov,
    adagrad,
    rmsprop,
    ftrl,
    adam,
    adamw,
    // The kinds of OneStateRule and TwoStatesRule, with the formulas of torch.optim and tf.keras.optimizers. For
    // embeddings in other programs.
    torch_momentum,
    torch_nesterov,
    keras_adagrad,
    keras_rmsprop,
    torch_adam,
    torch_adamw,
    torch_adamax,
    adamax,
    adadelta
  };
  Kind kind = Kind::adam;
  float beta1 = 0.9f;                        ///< used by all kinds of Adam, AdamW and Adamax
  float beta2 = 0.999f;                      ///< used by all kinds of Adam, AdamW and Adamax
  float epsilon = 1e-7f;                     ///< used by all kinds except sgd, ftrl and the kinds that use `momentum`
  float momentum = 0.9f;                     ///< used by momentum_sgd, nesterov, torch_momentum, torch_nesterov
  float smoothing = 0.9f;                    ///< used by rmsprop, keras_rmsprop, adadelta
  float initial = 0;                         ///< adagrad, ftrl: initial value of the sum of squares
  bool row_wise = false;                     ///< adagrad: one state per table row; dense weights have one per element
  float beta = 1, lambda1 = 0, lambda2 = 0;  ///< used by ftrl
  float weight_decay = 0.01f;                ///< used by adamw, torch_adamw
  float rate_factor = 1;  ///< multiplies the step's learning rate, for embeddings with their own rate
  float most_gradient = std::numeric_limits<float>::infinity();  ///< gradients are clipped to this magnitude

  HCTR_HD GradientScale gradient_scale(const UpdateScalars&) const;

  // Properties of the rule, see RuleDefaults.
  int states() const;
  float start(int state) const;
  bool zero_gradient_is_noop() const;
};

/// Inputs of a rule that are constant within a step, computed once per step.
struct UpdateScalars {
  float rate;            ///< learning rate; for adam and adamw, multiplied by the bias corrections of both moments
  float gradient_scale;  ///< 1 / loss_scale
  float decay;           ///< adamw: the fraction of a weight that is subtracted
  float root;            ///< torch_adam, torch_adamw: the factor of epsilon, sqrt(1 - beta2^t)
};

HCTR_HD inline GradientScale Optimizer::gradient_scale(const UpdateScalars& of_step) const {
  return {of_step.gradient_scale, most_gradient};
}

/// The values from which the scalars of an embedding row's update are computed. step: only values of the step.
/// last_step: also the step of the row's last update. mean_square: also the mean square of the row's gradient.
enum class ScalarsOf { step, last_step, mean_square };

/// The base of every rule. A rule defines kStates and update(), and overrides other members as needed.
struct RuleDefaults {
  static constexpr ScalarsOf kScalarsOf = ScalarsOf::step;
  /// Whether g = 0 changes neither weight nor state. If true, a global update of a table can skip rows that are not in
  /// the batch.
  static constexpr bool kZeroGradientIsNoop = false;
  /// Index of the state through which a gradient reaches the weight in a later step; -1: a gradient reaches the weight
  /// in the same step. An infinite or NaN gradient makes this state (-1: the weight) infinite or NaN.
  static constexpr int kDelayedIn = -1;
  /// Whether the rule trains. If true, results that are not finite are reported.
  static constexpr bool kTrains = true;
  /// The initial value of a state.
  static float start(const Optimizer&, int /*state*/) { return 0; }
  HCTR_HD static UpdateScalars scalars(const Optimizer& o, const StepState& state) {
    return {state.learning_rate * o.rate_factor, 1.0f / state.loss_scale, 0};
  }
};

/// Whether the weight is finite. If the rule has a state kDelayedIn, that state must be finite too.
template <class Rule>
HCTR_HD bool left_finite(float w, const float* state) {
  bool finite = fabsf(w) <= kLargestFloat;
  if constexpr (Rule::kDelayedIn >= 0) finite = finite && fabsf(state[Rule::kDelayedIn]) <= kLargestFloat;
  return finite;
}

/// w -= lr g.
struct SgdRule : RuleDefaults {
  static constexpr int kStates = 0;
  static constexpr bool kZeroGradientIsNoop = true;
  HCTR_HD static void update(const Optimizer&, const UpdateScalars& s, float g, float& w, float*) { w -= s.rate * g; }
};

/// m = mu m - lr g;  w += m.
/// Source: B. Polyak, "Some methods of speeding up the convergence of iteration methods", 1964; m includes the rate.
struct MomentumSgdRule : RuleDefaults {
  static constexpr int kStates = 1;
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    state[0] = o.momentum * state[0] - s.rate * g;
    w += state[0];
  }
};

/// a' = mu a - lr g;  w += -mu a + (1 + mu) a'.
/// Source: I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013. w is
/// the point at which the gradient is evaluated.
struct NesterovRule : RuleDefaults {
  static constexpr int kStates = 1;
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    const float before = state[0];
    state[0] = o.momentum * before - s.rate * g;
    w += (1.0f + o.momentum) * state[0] - o.momentum * before;
  }
};

/// s += g^2;  w -= lr g / (sqrt(s) + eps).  s starts at `initial`.
/// Source: J. Duchi, E. Hazan, Y. Singer, "Adaptive subgradient methods", JMLR 2011, the diagonal form.
struct AdaGradRule : RuleDefaults {
  static constexpr int kStates = 1;
  static constexpr bool kZeroGradientIsNoop = true;
  static float start(const Optimizer& o, int) { return o.initial; }
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    state[0] += g * g;
    w -= s.rate * g / (sqrtf(state[0]) + o.epsilon);
  }
};

/// v = b v + (1 - b) g^2;  w -= lr g / (sqrt(v) + eps), b = smoothing.
/// Source: T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning", 2012.
struct RmsPropRule : RuleDefaults {
  static constexpr int kStates = 1;
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    state[0] = o.smoothing * state[0] + (1.0f - o.smoothing) * g * g;
    w -= s.rate * g / (sqrtf(state[0]) + o.epsilon);
  }
};

/// FTRL-Proximal:  n' = n + g^2;  z' = z + g - (r' - r) w;  w' = |z'| > l1 ? (sign(z') l1 - z') / (r' + l2) : 0
/// with r = (beta + sqrt(n)) / lr, the inverse of the weight's learning rate.
/// Source: H. B. McMahan et al., "Ad click prediction: a view from the trenches", KDD 2013, algorithm 1.
///
/// If w is not 0, then z = -(w (r + l2) + sign(w) l1), so z is read only if w is 0. (The states are n, which starts at
/// `initial`, and z, which starts at 0.) The rule is equivalent to: w' = u - sign(u) t, or 0 if |u| <= t, where
///   u = w + sign(w) t - lr g / q  or, if w is 0,  -lr (z + g) / q,   q = beta + sqrt(n') + lr l2,   t = lr l1 / q.
/// This form has three advantages: an initialized or loaded weight needs no z, a change of the learning rate (also to
/// 0) does not change weights, and g = 0 is a no-op.
struct FtrlRule : RuleDefaults {
  static constexpr int kStates = 2;
  static constexpr bool kZeroGradientIsNoop = true;
  static float start(const Optimizer& o, int state) { return state == 0 ? o.initial : 0; }
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    const float n = state[0] + g * g, least = fabsf(g), most = sqrtf(n);
    // at least |g|, a lower bound of sqrt(n'), because g^2 may underflow to 0
    const float q = o.beta + (most > least ? most : least) + s.rate * o.lambda2;
    const float threshold = s.rate * o.lambda1 / q;
    const bool at_zero = w == 0;
    const float z = state[1] + g;
    const float u = at_zero ? -s.rate * z / q : w + copysignf(threshold, w) - s.rate * g / q;
    const float moved = fabsf(u) <= threshold ? 0 : u - copysignf(threshold, u);
    const float after = at_zero ? z : s.rate > 0 ? -u * q / s.rate : state[1];
    state[0] = n;
    state[1] = g == 0 ? state[1] : after;
    w = g == 0 ? w : moved;
  }
};

/// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  w -= rate * m / (sqrt(v) + eps) with
/// rate = lr * sqrt(1 - b2^t) / (1 - b1^t), t = updates + 1.
/// Source: D. Kingma and J. Ba, "Adam", ICLR 2015, section 2 (the efficient form at its end).
struct AdamRule : RuleDefaults {
  static constexpr int kStates = 2;
  /// Computed in double and rounded once, so that devices agree.
  HCTR_HD static UpdateScalars scalars(const Optimizer& o, const StepState& state) {
    UpdateScalars scalars = RuleDefaults::scalars(o, state);
    const double t = static_cast<double>(state.updates) + 1.0;
    const double correction2 = 1.0 - pow(static_cast<double>(o.beta2), t);
    const double correction1 = 1.0 - pow(static_cast<double>(o.beta1), t);
    scalars.rate = static_cast<float>(static_cast<double>(scalars.rate) * sqrt(correction2) / correction1);
    return scalars;
  }
  /// Updates the moments. Returns the amount to subtract from the weight.
  HCTR_HD static float move(const Optimizer& o, const UpdateScalars& s, float g, float* state) {
    state[0] = o.beta1 * state[0] + (1.0f - o.beta1) * g;
    state[1] = o.beta2 * state[1] + (1.0f - o.beta2) * g * g;
    return s.rate * state[0] / (sqrtf(state[1]) + o.epsilon);
  }
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    w -= move(o, s, g, state);
  }
};

/// Adam, and also w -= lr * weight_decay * w with the w before the step. The moments exclude the decay. Source: I.
/// Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019, algorithm 2; its lambda is lr *
/// weight_decay.
struct AdamWRule : AdamRule {
  HCTR_HD static UpdateScalars scalars(const Optimizer& o, const StepState& state) {
    UpdateScalars scalars = AdamRule::scalars(o, state);
    scalars.decay = RuleDefaults::scalars(o, state).rate * o.weight_decay;
    return scalars;
  }
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    w -= s.decay * w + move(o, s, g, state);
  }
};

/// Rules with one state, by kind:
///   torch_momentum  m = mu m + g;               w -= lr m
///   torch_nesterov  m = mu m + g;               w -= lr (g + mu m)
///   keras_adagrad   s += g^2;                   w -= lr g / sqrt(s + eps).  s starts at `initial`
///   keras_rmsprop   v = b v + (1 - b) g^2;      w -= lr g / sqrt(v + eps), b = smoothing
/// One rule serves all kinds, because each rule is compiled into many kernels. The branch on the kind is uniform.
struct OneStateRule : RuleDefaults {
  static constexpr int kStates = 1;
  static float start(const Optimizer& o, int) { return o.kind == Optimizer::Kind::keras_adagrad ? o.initial : 0; }
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    switch (o.kind) {
      case Optimizer::Kind::keras_adagrad:
        state[0] += g * g;
        w -= s.rate * g / sqrtf(state[0] + o.epsilon);
        break;
      case Optimizer::Kind::keras_rmsprop:
        state[0] = o.smoothing * state[0] + (1.0f - o.smoothing) * g * g;
        w -= s.rate * g / sqrtf(state[0] + o.epsilon);
        break;
      case Optimizer::Kind::torch_nesterov:
        state[0] = o.momentum * state[0] + g;
        w -= s.rate * (g + o.momentum * state[0]);
        break;
      default:
        state[0] = o.momentum * state[0] + g;
        w -= s.rate * state[0];
    }
  }
};

/// Rules with two states, by kind, t = updates + 1:
///   torch_adam     Adam, epsilon added to the corrected root:  w -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps)
///   torch_adamw    the same, and w -= lr * weight_decay * w
///   adamax         m = b1 m + (1 - b1) g;  u = max(b2 u, |g|);        w -= lr / (1 - b1^t) m / (u + eps)
///   torch_adamax   the same with u = max(b2 u, |g| + eps);            w -= lr / (1 - b1^t) m / u
///   adadelta       a = b a + (1 - b) g^2;  d = sqrt(x + eps) / sqrt(a + eps) g;  x = b x + (1 - b) d^2;  w -= lr d
/// Sources: D. Kingma and J. Ba, "Adam", ICLR 2015, sections 2 and 7.1; M. Zeiler, "ADADELTA", 2012, algorithm 1.
struct TwoStatesRule : RuleDefaults {
  static constexpr int kStates = 2;
  HCTR_HD static UpdateScalars scalars(const Optimizer& o, const StepState& state) {
    UpdateScalars scalars = RuleDefaults::scalars(o, state);
    if (o.kind == Optimizer::Kind::adadelta) return scalars;
    const double t = static_cast<double>(state.updates) + 1.0, rate = static_cast<double>(scalars.rate);
    const double correction1 = 1.0 - pow(static_cast<double>(o.beta1), t);
    if (o.kind == Optimizer::Kind::torch_adam || o.kind == Optimizer::Kind::torch_adamw) {
      const double root = sqrt(1.0 - pow(static_cast<double>(o.beta2), t));
      if (o.kind == Optimizer::Kind::torch_adamw) scalars.decay = scalars.rate * o.weight_decay;
      scalars.root = static_cast<float>(root);
      scalars.rate = static_cast<float>(rate * root / correction1);
    } else {
      scalars.rate = static_cast<float>(rate / correction1);
    }
    return scalars;
  }
  HCTR_HD static void update(const Optimizer& o, const UpdateScalars& s, float g, float& w, float* state) {
    if (o.kind == Optimizer::Kind::adadelta) {
      state[0] = o.smoothing * state[0] + (1.0f - o.smoothing) * g * g;
      const float step = sqrtf(state[1] + o.epsilon) / sqrtf(state[0] + o.epsilon) * g;
      state[1] = o.smoothing * state[1] + (1.0f - o.smoothing) * step * step;
      w -= s.rate * step;
      return;
    }
    state[0] = o.beta1 * state[0] + (1.0f - o.beta1) * g;
    if (o.kind == Optimizer::Kind::torch_adam || o.kind == Optimizer::Kind::torch_adamw) {
      state[1] = o.beta2 * state[1] + (1.0f - o.beta2) * g * g;
      w -= s.decay * w + s.rate * state[0] / (sqrtf(state[1]) + o.epsilon * s.root);
      return;
    }
    const bool inside = o.kind == Optimizer::Kind::torch_adamax;
    const float faded = o.beta2 * state[1], magnitude = fabsf(g) + (inside ? o.epsilon : 0.0f);
    state[1] = faded > magnitude ? faded : magnitude;
    const float divisor = state[1] + (inside ? 0.0f : o.epsilon);
    w -= divisor > 0 ? s.rate * state[0] / divisor : 0.0f;
  }
};

/// Calls body.operator()<Rule>() with the rule of `kind`.
template <class Body>
void dispatch_rule(Optimizer::Kind kind, Body&& body) {
  using Kind = Optimizer::Kind;
  switch (kind) {
    case Kind::sgd:
      return body.template operator()<SgdRule>();
    case Kind::momentum_sgd:
      return body.template operator()<MomentumSgdRule>();
    case Kind::nesterov:
      return body.template operator()<NesterovRule>();
    case Kind::adagrad:
      return body.template operator()<AdaGradRule>();
    case Kind::rmsprop:
      return body.template operator()<RmsPropRule>();
    case Kind::ftrl:
      return body.template operator()<FtrlRule>();
    case Kind::adam:
      return body.template operator()<AdamRule>();
    case Kind::adamw:
      return body.template operator()<AdamWRule>();
    case Kind::torch_momentum:
    case Kind::torch_nesterov:
    case Kind::keras_adagrad:
    case Kind::keras_rmsprop:
      return body.template operator()<OneStateRule>();
    case Kind::torch_adam:
    case Kind::torch_adamw:
    case Kind::torch_adamax:
    case Kind::adamax:
    case Kind::adadelta:
      return body.template operator()<TwoStatesRule>();
  }
}

inline int Optimizer::states() const {
  int states = 0;
  dispatch_rule(kind, [&]<class Rule>() { states = Rule::kStates; });
  return states;
}
inline float Optimizer::start(int state) const {
  float start = 0;
  dispatch_rule(kind, [&]<class Rule>() { start = Rule::start(*this, state); });
  return start;
}
inline bool Optimizer::zero_gradient_is_noop() const {
  bool noop = false;
  dispatch_rule(kind, [&]<class Rule>() { noop = Rule::kZeroGradientIsNoop; });
  return noop;
}

}  // namespace hctr::ops
