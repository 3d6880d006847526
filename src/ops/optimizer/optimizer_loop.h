// Applies an update rule to a range of elements on the CPU.
#pragma once

#include <atomic>

#include "ops/optimizer/optimizer_rules.h"

namespace hctr::ops::cpu {

/// Addresses of weights and their states.
struct WeightMemory {
  float* w;
  float* states[kMostStates];
};

/// Records an update whose result is infinite or NaN. Thread-safe.
inline void report_spoiled(const StepState& state) {
  if (state.spoiled) std::atomic_ref<int32_t>(*state.spoiled).store(1, std::memory_order_relaxed);
}

/// Applies the rule to n elements with gradients g * gradient_scale. Returns whether all results are finite.
/// `optimizer`, `scalars` and `at` are passed by value. The compiler then knows that the three do not alias the arrays,
/// and vectorizes the loop.
template <class Rule, class Scalars>
bool update_elements(const Optimizer optimizer, const Scalars scalars, const float* g,
                     const GradientScale gradient_scale, const WeightMemory at, int64_t n) {
  int32_t spoiled = 0;
  HCTR_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) {
    float weight = at.w[i], state[kMostStates] = {};
    for (int s = 0; s < Rule::kStates; ++s) state[s] = at.states[s][i];
    Rule::update(optimizer, scalars, g[i] * gradient_scale, weight, state);
    at.w[i] = weight;
    for (int s = 0; s < Rule::kStates; ++s) at.states[s][i] = state[s];
    spoiled |= !left_finite<Rule>(weight, state);
  }
  return spoiled == 0;
}

}  // namespace hctr::ops::cpu
