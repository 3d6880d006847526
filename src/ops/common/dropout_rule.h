// The mask and the scale of dropout, shared by every device.
//
// An element uses 16 random bits, so one Philox draw decides eight elements. Draw q (0 to 3) of 32 adjacent columns
// decides columns 2 q and 2 q + 1 of each group of eight. A GEMM thread owns exactly these columns of its accumulator
// tile, so the GEMM can apply dropout in its epilogue.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/base/step_state.h"

namespace hctr::ops {

/// Philox rounds per draw.
inline constexpr int kDropoutRounds = 7;

struct DropoutRule {
  uint32_t threshold;  ///< an element is dropped if its 16 bits are below the threshold
  float scale;         ///< 1 / (1 - rounded rate)
  uint64_t key;

  DropoutRule(float rate, uint64_t seed, uint64_t stream)
      : threshold(static_cast<uint32_t>(std::clamp(std::lround(rate * 65536.0f), 0L, 65535L))),
        scale(65536.0f / static_cast<float>(65536 - threshold)),
        key(random_key(seed, stream)) {}

  /// Whether an element is kept. The lower 16 bits of `bits` decide.
  HCTR_HD bool keeps(uint32_t bits) const { return (bits & 0xffffu) >= threshold; }
  template <class A>
  HCTR_HD A apply(uint32_t bits, A x) const {
    return keeps(bits) ? x * scale : A(0);
  }
};

/// Index of the draw, in the sequence (key, step), that decides element (row, column) of a tensor of `rows` x `width`.
/// A sample may have several rows. Value (column % 32) / 8 of the draw contains the element's bits, the lower half for
/// even columns, the upper half for odd ones.
HCTR_HD inline uint64_t dropout_draw(const StepState& state, int64_t rows, int64_t row, int64_t width, int64_t column) {
  const int64_t rows_each = state.samples > 0 && rows % state.samples == 0 ? rows / state.samples : 1;
  const int64_t blocks = (width + 31) / 32;
  return static_cast<uint64_t>(((state.first_sample * rows_each + row) * blocks + column / 32) * 4 + column % 8 / 2);
}

}  // namespace hctr::ops
