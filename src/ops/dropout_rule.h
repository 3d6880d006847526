// The decision and the scale of dropout, shared by every device.
#pragma once

#include <cmath>

#include "base/random.h"
#include "base/step_state.h"

namespace hctr::ops {

struct DropoutRule {
  int32_t threshold;  ///< u >= rate, for the 24 bits that u is made of: exact, as rate * 2^24 is
  float scale;        ///< 1 / (1 - rate)
  uint64_t key;

  DropoutRule(float rate, uint64_t seed, uint64_t stream)
      : threshold(static_cast<int32_t>(std::ceil(rate * 16777216.0f))),
        scale(1.0f / (1.0f - rate)),
        key(random_key(seed, stream)) {}

  template <class A>
  HCTR_HD A apply(uint32_t bits, A x) const {
    return static_cast<int32_t>(bits >> 8) >= threshold ? x * scale : A(0);
  }
};

/// The index of an element in the random sequence (key, step).
/// `elements`: of the whole tensor, which may have several rows per sample.
HCTR_HD inline uint64_t dropout_index(const StepState& state, int64_t elements, int64_t row, int64_t row_elements,
                                      int64_t column) {
  const bool whole = state.samples > 0 && elements % state.samples == 0;
  const int64_t of_sample = whole ? elements / state.samples : row_elements;
  return static_cast<uint64_t>(state.first_sample * of_sample + row * row_elements + column);
}

}  // namespace hctr::ops
