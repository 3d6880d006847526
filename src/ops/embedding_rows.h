// Rows of an embedding table as kernels see them: where they lie, how they start, how a step changes them.
#pragma once

#include "device/op.h"
#include "ops/hash_index.h"
#include "ops/optimizer.h"

namespace hctr::ops {

/// Everything kept per row. Addresses stay for the life of the table; the rows behind them grow.
struct RowData {
  int64_t dim = 0;
  float* vectors = nullptr;               // [rows, dim]
  float* states[2] = {nullptr, nullptr};  // [rows, dim] each, as many as the optimizer has
  int32_t* last_step = nullptr;           // [rows] lazy updates: the step that touched the row last
  uint8_t* touched = nullptr;             // [rows] global updates: 1 between update_rows and sweep_rows, else 0
};

/// Initial values: element e of the row of (key, slot) is symmetric_float(bits, bound) with
/// bits = philox(random_key(seed, stream), key, slot << 32 | e / 4)[e % 4]. They do not depend on when a key arrives.
struct RowInit {
  uint64_t key = 0;  ///< random_key(seed, stream)
  float bound = 0.05f;
  const float* slot_bounds = nullptr;  // per slot; null: `bound` for all

  HCTR_HD float bound_of(int32_t slot) const { return slot_bounds ? slot_bounds[slot] : bound; }
  HCTR_HD Random4 four(int64_t row_key, int32_t slot, int64_t e) const {
    return philox(key, static_cast<uint64_t>(row_key),
                  static_cast<uint64_t>(slot) << 32 | static_cast<uint64_t>(e >> 2));
  }
};

/// Gives rows state.ready + 1 to state.rows their initial values. Their optimizer state is 0, as grown memory is.
HCTR_OP(void init_new_rows(Context&, HashIndex, RowInit, RowData))

/// x[i] = table[rows[i]] and table[rows[i]] = x[i]: bits of 4-byte elements. Scattered rows are distinct; nothing is
/// written to row 0. Shapes: x [n, words], dense; table [.., words].
HCTR_OP(void gather_rows(Context&, const int32_t* rows, const void* table, Tensor x))
HCTR_OP(void scatter_rows(Context&, const int32_t* rows, Tensor x, void* table))

/// What LazyAdamRule needs for one row.
struct LazyScalars {
  float move, decay1, decay2;
};

/// Adam that touches a row only when it occurs and then catches up. With t the step, p the row's last, k = t - p:
///   w -= lr / (1 - b1) * sqrt(1 - b2^p) / (1 - b1^p) * (1 - b1^k) * m / (sqrt(v) + eps)   with the old m and v
///   m = b1^k m + (1 - b1) g;  v = b2^k v + (1 - b2) g^2
/// so a gradient moves the row at its next touch. A row never touched counts as touched in step 1.
struct LazyAdamRule {
  HCTR_HD static LazyScalars scalars(const Optimizer& o, const StepState& state, int32_t last_step) {
    const double b1 = static_cast<double>(o.beta1), b2 = static_cast<double>(o.beta2);
    const double before = last_step > 0 ? last_step : 1;
    const double passed = static_cast<double>(state.step) + 1.0 - before;
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

/// Calls body.operator()<Rule, states, lazy>().
template <class Body>
void dispatch_row_rule(Optimizer::Kind kind, const RowData& data, Body&& body) {
  if (data.last_step) {
    HCTR_EXPECT(kind == Optimizer::Kind::adam, "a lazy update with a rule other than Adam");
    return body.template operator()<LazyAdamRule, 2, true>();
  }
  dispatch_rule(kind, [&]<class Rule, int States>() { body.template operator()<Rule, States, false>(); });
}

}  // namespace hctr::ops
