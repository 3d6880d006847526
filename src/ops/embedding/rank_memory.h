// Memory of several ranks, as the operators that read and write vectors there know it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/platform.h"
#include "device/dtype.h"

namespace hctr::ops {

struct RankMemory {
  static constexpr size_t kMostAligned = 16;
  DType dtype = DType::f32;          // of the vectors there
  size_t alignment = kMostAligned;   // in bytes, of every vector: a power of two
  bool far = false;                  // some of it is that of other devices
  const uint32_t* closed = nullptr;  // on the device; not 0: nothing may be written any more. Null: never

  HCTR_HD bool open() const { return !closed || *closed == 0; }
  /// For one more address, or distance in bytes, of vectors.
  void align(uintptr_t address) {
    alignment = std::min(alignment, size_t{1} << std::countr_zero(address | kMostAligned));
  }
};

}  // namespace hctr::ops
