// Device memory from an allocator of the library's caller instead of the CUDA driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/device/device.h"

namespace hctr {

/// An allocator that the caller of this library provides. Every buffer that uses the allocator holds a shared_ptr to
/// this object. Only the thread of the object's owner uses the object.
struct DeviceAllocator {
  Device device;
  /// Returns memory aligned to 256 bytes with undefined content, or null if the allocator has no more memory.
  std::function<std::byte*(size_t bytes, void* stream)> allocate;
  std::function<void(std::byte* memory, size_t bytes, void* stream)> free;
  void* stream = nullptr;  ///< stream whose work uses the memory
  int64_t bytes = 0;       ///< bytes allocated and not yet freed

  /// Allocates memory and zeroes it in stream order. Errors: Error(device) with the number of bytes; Error(usage) for
  /// misaligned memory.
  std::byte* take(size_t bytes);
  void give_back(std::byte* memory, size_t bytes) noexcept;
};

/// While this object exists, buffers that this thread creates on the allocator's device use the allocator. With a null
/// allocator, buffers use the driver. `rows`: whether table rows use the allocator too. If so, row arrays allocate
/// their maximum size in advance.
class AllocatorScope {
 public:
  explicit AllocatorScope(std::shared_ptr<DeviceAllocator>, bool rows = false);
  ~AllocatorScope();
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;

  /// of(): the allocator for new buffers of the device on this thread. of_rows(): the allocator for table rows. Null:
  /// the driver allocates.
  static std::shared_ptr<DeviceAllocator> of(Device);
  static std::shared_ptr<DeviceAllocator> of_rows(Device);

 private:
  std::shared_ptr<DeviceAllocator> allocator_;
  bool rows_;
  const AllocatorScope* before_;
};

}  // namespace hctr
