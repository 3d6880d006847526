// Properties of memory with vectors that operators read or write. The memory may be on several ranks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/platform.h"

namespace hctr::ops {

struct RankMemory {
  static constexpr size_t kMostAligned = 16;
  DType dtype = DType::f32;           // dtype of the vectors
  size_t alignment = kMostAligned;    // alignment of every vector in bytes, a power of two
  bool remote = false;                // some of the memory is on other devices
  const uint32_t* aborted = nullptr;  // device memory; if *aborted != 0, nothing may be written; null: always writable

  HCTR_HD bool writable() const { return !aborted || *aborted == 0; }
  /// Reduces `alignment` to that of `address`: a vector's address, or a distance between vectors in bytes.
  void align(uintptr_t address) {
    alignment = std::min(alignment, size_t{1} << std::countr_zero(address | kMostAligned));
  }
};

}  // namespace hctr::ops
