// Which rows of a tensor hold samples, when a batch is not full.
#pragma once

#include <cstdint>

#include "core/base/platform.h"
#include "core/base/step_state.h"

namespace hctr::ops {

/// How many of a tensor's first rows hold samples. A tensor with several rows per sample (behind a Reshape) has them in
/// the order of samples.
HCTR_HD inline int64_t valid_rows(const StepState& state, int64_t rows) {
  const int64_t valid = state.valid_samples, samples = state.samples;
  if (samples > 0 && rows % samples == 0) return rows / samples * (valid < samples ? valid : samples);
  return valid < rows ? valid : rows;
}

}  // namespace hctr::ops
