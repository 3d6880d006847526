// The number of rows of a tensor that contain samples, if a batch is not full.
#pragma once

#include <cstdint>

#include "core/base/platform.h"
#include "core/base/step_state.h"

namespace hctr::ops {

/// Returns how many leading rows of a tensor contain samples. A tensor may have several rows per sample (after a
/// Reshape); the rows of a sample are contiguous.
HCTR_HD inline int64_t valid_rows(const StepState& state, int64_t rows) {
  const int64_t valid = state.valid_samples, samples = state.samples;
  if (samples > 0 && rows % samples == 0) return rows / samples * (valid < samples ? valid : samples);
  return valid < rows ? valid : rows;
}

}  // namespace hctr::ops
