// Copies of a few kilobytes between page-locked host memory and a device. A kernel makes the copies, because a kernel
// starts sooner after the preceding kernel than a copy engine does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/op.h"

namespace hctr::ops {

inline constexpr size_t kMostHostCopies = 8;

/// Both addresses are multiples of 16 bytes. The copy may also write up to 15 bytes past the end of `to`, from the
/// bytes past the end of `from`.
struct HostCopy {
  std::byte* to;
  const std::byte* from;
  size_t bytes;
};

/// Queues up to kMostHostCopies copies. `done` (may be null): a word in page-locked host memory that becomes 1 once the
/// host can read all copies.
HCTR_OP(void copy_with_host(Context&, std::span<const HostCopy> copies, uint32_t* done))

}  // namespace hctr::ops
