// Device memory from the caller's allocator instead of the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/device/device.h"

namespace hctr {

/// Shared by all memory that came from it. For the thread of its owner.
struct DeviceAllocator {
  Device device;
  /// Null: there is no more. Aligned to 256 bytes; with any content.
  std::function<std::byte*(size_t bytes, void* stream)> allocate;
  std::function<void(std::byte* memory, size_t bytes, void* stream)> free;
  void* stream = nullptr;  ///< whose work uses the memory
  int64_t bytes = 0;       ///< that it has given and not got back

  /// Zeros, in the order of the stream. Errors: Error(device) with the bytes; Error(usage) for memory that is not
  /// aligned.
  std::byte* take(size_t bytes);
  void give_back(std::byte* memory, size_t bytes) noexcept;
};

/// While it lives, this thread takes memory of the allocator's device from it; from the driver, where it is null.
/// `rows`: also for rows of tables, whose arrays then have their whole size at once.
class AllocatorScope {
 public:
  explicit AllocatorScope(std::shared_ptr<DeviceAllocator>, bool rows = false);
  ~AllocatorScope();
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;

  /// Null: the driver.
  static std::shared_ptr<DeviceAllocator> of(Device);
  static std::shared_ptr<DeviceAllocator> of_rows(Device);

 private:
  std::shared_ptr<DeviceAllocator> allocator_;
  bool rows_;
  const AllocatorScope* before_;
};

}  // namespace hctr
