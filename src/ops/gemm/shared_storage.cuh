// Dynamic shared memory of a block. A kernel declares a struct, its storage: the boxes of pipeline stages first, then
// other arrays and the barriers. The struct is the layout on the device; shared_bytes<Storage>() is the size for the
// launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/gemm/hopper.cuh"

namespace hctr::ops::hopper {

constexpr size_t kMostSharedBytes = 227 * 1024;  ///< maximum shared memory of a block
/// Alignment of boxes with a 128-byte swizzle. shared_storage() aligns the first member, so the size of every earlier
/// box must be a multiple of kBoxAlignment.
constexpr uint32_t kBoxAlignment = 1024;

/// Bytes of dynamic shared memory of a kernel that calls shared_storage<Storage>(), including bytes for the alignment.
template <class Storage>
constexpr size_t shared_bytes() {
  constexpr size_t kBytes = sizeof(Storage) + kBoxAlignment;
  static_assert(kBytes <= kMostSharedBytes);
  return kBytes;
}

/// The storage of this block.
template <class Storage>
__device__ inline Storage& shared_storage() {
  extern __shared__ std::byte dynamic_shared_memory[];
  uint32_t at = (shared_address(dynamic_shared_memory) + kBoxAlignment - 1) / kBoxAlignment * kBoxAlignment;
  asm("" : "+r"(at));  // prevents the compiler from computing the address again for each access
  return *static_cast<Storage*>(__cvta_shared_to_generic(at));
}

}  // namespace hctr::ops::hopper
