// Division by a kernel argument, done as a multiplication, because an integer division takes about twenty instructions.
#pragma once

#include <cstdint>

#include "core/base/platform.h"

namespace hctr::ops {

/// Divides integers below 2^16 by a fixed divisor of at most 2^16.
class SmallDivisor {
 public:
  SmallDivisor() = default;
  explicit SmallDivisor(int by) : magic_(by == 1 ? 0 : 0xffffffffu / static_cast<uint32_t>(by) + 1) {}
  HCTR_HD int divide(int number) const {
    return magic_ == 0 ? number : static_cast<int>((uint64_t{static_cast<uint32_t>(number)} * magic_) >> 32);
  }

 private:
  uint32_t magic_ = 0;  // ceil(2^32 / by); 0 for by = 1
};

}  // namespace hctr::ops
