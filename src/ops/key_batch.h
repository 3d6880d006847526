// The keys of one batch as kernels see them: bags, slot-major.
#pragma once

#include <cstdint>

#include "base/platform.h"

namespace hctr::ops {

/// How the vectors of a bag become one.
enum class Combiner { sum, mean };

/// Bag (slot s, sample b), numbered s * samples + b, holds keys offsets[bag] up to offsets[bag + 1]. All on one device.
struct KeyBatch {
  const int64_t* keys = nullptr;     // [key_capacity]; defined up to offsets[bags()]
  const int32_t* offsets = nullptr;  // [bags() + 1]
  int64_t slots = 0, samples = 0, key_capacity = 0;

  HCTR_HD int64_t bags() const { return slots * samples; }
  HCTR_HD int64_t size() const { return offsets[bags()]; }
  /// What the keys of a bag weigh in its vector.
  HCTR_HD float weight(Combiner combiner, int64_t bag) const {
    if (combiner == Combiner::sum) return 1.0f;
    const int32_t n = offsets[bag + 1] - offsets[bag];
    return n > 1 ? 1.0f / static_cast<float>(n) : 1.0f;
  }
};

}  // namespace hctr::ops
