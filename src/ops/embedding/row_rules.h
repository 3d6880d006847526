// Update rules with per-row scalars, and the scalars that each rule needs for a row.
#pragma once

#include <type_traits>

#include "core/base/expect.h"
#include "ops/embedding/embedding_rows.h"

namespace hctr::ops {

/// Per-row scalars of LazyAdamRule.
struct LazyScalars {
  float move, decay1, decay2;
};

/// Lazy Adam: updates a row only in batches that contain the row, which then catches up. t is the number of this
/// update, p the number of the row's last update (1 if there was none), and k = t - p:
///   w -= lr / (1 - b1) * sqrt(1 - b2^p) / (1 - b1^p) * (1 - b1^k) * m / (sqrt(v) + eps)   with m and v of update p
///   m = b1^k m + (1 - b1) g;  v = b2^k v + (1 - b2) g^2
/// A gradient therefore changes the row's weights only in the row's next update.
struct LazyAdamRule : AdamRule {
  static constexpr ScalarsOf kScalarsOf = ScalarsOf::last_step;
  static constexpr int kDelayedIn = 0;
  HCTR_HD static LazyScalars of_row(const Optimizer& o, const StepState& state, int32_t last_step) {
    const double b1 = static_cast<double>(o.beta1), b2 = static_cast<double>(o.beta2);
    const double before = last_step > 0 ? last_step : 1;
    const double passed = static_cast<double>(state.updates) + 1.0 - before;
    const double decay1 = pow(b1, passed);
    const double rate = static_cast<double>(state.learning_rate * o.rate_factor);
    return {
        static_cast<float>(rate / (1.0 - b1) * sqrt(1.0 - pow(b2, before)) / (1.0 - pow(b1, before)) * (1.0 - decay1)),
        static_cast<float>(decay1), static_cast<float>(pow(b2, passed))};
  }
  HCTR_HD static void update(const Optimizer& o, const LazyScalars& s, float g, float& w, float* state) {
    w -= s.move * state[0] / (sqrtf(state[1]) + o.epsilon);
    state[0] = s.decay1 * state[0] + (1.0f - o.beta1) * g;
    state[1] = s.decay2 * state[1] + (1.0f - o.beta2) * g * g;
  }
};

/// AdaGrad with one state per row: s += mean of g^2 over the row;  w -= lr / (sqrt(s) + eps) g.
/// Source: D. Mudigere et al., "Software-hardware co-design for fast and scalable training of deep learning
/// recommendation models", ISCA 2022.
struct RowWiseAdaGradRule : SgdRule {
  static constexpr ScalarsOf kScalarsOf = ScalarsOf::mean_square;
  HCTR_HD static UpdateScalars of_row(const Optimizer& o, UpdateScalars s, float mean_square, float& state) {
    state += mean_square;
    s.rate /= sqrtf(state) + o.epsilon;
    return s;
  }
};

/// A rule that does not train: stores the summed gradient in the row.
struct StoreGradientRule : RuleDefaults {
  static constexpr int kStates = 0;
  static constexpr bool kTrains = false;
  HCTR_HD static UpdateScalars scalars(const Optimizer&, const StepState&) { return {0, 1.0f, 0}; }
  HCTR_HD static void update(const Optimizer&, const UpdateScalars&, float g, float& w, float*) { w = g; }
};

/// Views the output of sum_row_gradients() as rows.
inline RowData rows_of_sums(const Tensor& sums) {
  RowData data;
  data.dim = sums.dim(1);
  data.vectors = {sums.data<float>(), DType::f32};
  return data;
}

template <class Rule>
using RowScalars = std::conditional_t<Rule::kScalarsOf == ScalarsOf::last_step, LazyScalars, UpdateScalars>;

/// The scalars of one row. Updates the rule's per-row state: call exactly once per row and step. `mean_square`: mean of
/// g^2 over the row, for rules that need it.
template <class Rule>
HCTR_HD RowScalars<Rule> row_scalars(const Optimizer& optimizer, const StepState& state, const UpdateScalars& of_step,
                                     const RowData& data, int64_t row, float mean_square) {
  if constexpr (Rule::kScalarsOf == ScalarsOf::last_step) {
    const LazyScalars scalars = Rule::of_row(optimizer, state, data.last_step[row]);
    data.last_step[row] = static_cast<int32_t>(state.updates + 1);
    return scalars;
  } else if constexpr (Rule::kScalarsOf == ScalarsOf::mean_square) {
    return Rule::of_row(optimizer, of_step, mean_square, data.states[0].as<float>()[row]);
  } else {
    return of_step;
  }
}

/// Calls body.operator()<Rule>() with the rule of `optimizer`. Rule::kStates counts per-element states, but not per-row
/// states.
template <class Body>
void dispatch_row_rule(const Optimizer& optimizer, const RowData& data, Body&& body) {
  if (data.last_step) {
    HCTR_EXPECT(optimizer.kind == Optimizer::Kind::adam, "lazy updates need the Adam rule");
    return body.template operator()<LazyAdamRule>();
  }
  if (optimizer.row_wise) {
    HCTR_EXPECT(optimizer.kind == Optimizer::Kind::adagrad, "row-wise updates need the AdaGrad rule");
    return body.template operator()<RowWiseAdaGradRule>();
  }
  dispatch_rule(optimizer.kind, [&]<class Rule>() { body.template operator()<Rule>(); });
}

}  // namespace hctr::ops
