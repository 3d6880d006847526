// The decision and the scale of dropout, shared by every device.
//
// An element has 16 random bits, so a draw of Philox decides eight. Of 32 adjacent columns of a row these are columns
// 2 q and 2 q + 1 of each group of eight, for q from 0 to 3: the columns that a thread of a GEMM has, so that the GEMM
// can apply dropout in its epilogue.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/base/step_state.h"

namespace hctr::ops {

/// Rounds of Philox for dropout.
inline constexpr int kDropoutRounds = 7;

struct DropoutRule {
  uint32_t threshold;  ///< the number of the 2^16 values that are dropped
  float scale;         ///< 1 / the share of those kept
  uint64_t key;

  DropoutRule(float rate, uint64_t seed, uint64_t stream)
      : threshold(static_cast<uint32_t>(std::clamp(std::lround(rate * 65536.0f), 0L, 65535L))),
        scale(65536.0f / static_cast<float>(65536 - threshold)),
        key(random_key(seed, stream)) {}

  /// For an element whose bits are the lower 16.
  HCTR_HD bool keeps(uint32_t bits) const { return (bits & 0xffffu) >= threshold; }
  template <class A>
  HCTR_HD A apply(uint32_t bits, A x) const {
    return keeps(bits) ? x * scale : A(0);
  }
};

/// The draw of the sequence (key, step) that decides the element at (row, column) of a tensor of `rows` x `width`, in
/// which a sample may have several rows. Its value (column % 32) / 8 has the element's bits: the lower half those of
/// even columns.
HCTR_HD inline uint64_t dropout_draw(const StepState& state, int64_t rows, int64_t row, int64_t width, int64_t column) {
  const int64_t rows_each = state.samples > 0 && rows % state.samples == 0 ? rows / state.samples : 1;
  const int64_t blocks = (width + 31) / 32;
  return static_cast<uint64_t>(((state.first_sample * rows_each + row) * blocks + column / 32) * 4 + column % 8 / 2);
}

}  // namespace hctr::ops
