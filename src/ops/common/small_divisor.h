// Division by a number that a kernel is given, by multiplication: an integer division takes about twenty instructions.
#pragma once

#include <cstdint>

#include "core/base/platform.h"

namespace hctr::ops {

/// Divides numbers below 2^16 by one of at most 2^16.
class SmallDivisor {
 public:
  SmallDivisor() = default;
  explicit SmallDivisor(int by) : magic_(by == 1 ? 0 : 0xffffffffu / static_cast<uint32_t>(by) + 1) {}
  HCTR_HD int divide(int number) const {
    return magic_ == 0 ? number : static_cast<int>((uint64_t{static_cast<uint32_t>(number)} * magic_) >> 32);
  }

 private:
  uint32_t magic_ = 0;  // 2^32 / by, rounded up; 0 for 1
};

}  // namespace hctr::ops
