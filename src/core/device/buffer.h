// Classes that own memory: on a device, on the host for transfers, and in a reserved address range that grows in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/device/row_budget.h"
#include "core/device/stream.h"

namespace hctr {

/// Zeroed memory of one device, aligned to 256 bytes. Inside an AllocatorScope the memory comes from the scope's
/// allocator. Errors: Error(device) with the number of requested bytes and of free bytes.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device, size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  Device device_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::shared_ptr<DeviceAllocator> allocator_;  // null: allocated by the driver
};

/// Zeroed host memory. If `near` is a GPU, the memory is page-locked, so copies are asynchronous.
class HostBuffer {
 public:
  HostBuffer(Device near, size_t bytes);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Device near_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

/// An address range that is reserved once and backed by memory as needed. Growth does not move data, so recorded work
/// that uses addresses in the range stays valid. Uses the driver's virtual memory management on CUDA, and mmap on the
/// CPU.
///
/// Inside an AllocatorScope for rows, the range is one block of the scope's allocator, with the maximum size. Such
/// memory cannot move to the host.
///
/// The range begins with device memory. From some multiple of the granularity on, the range may be backed by host
/// memory. Kernels access both parts in the same way. Host code must use read(), write() and zero(), which handle both
/// parts; copy_bytes() and zero_bytes() refuse the host part. On the CPU the same rules apply, although both parts are
/// the same memory.
class ReservedBuffer {
 public:
  /// Reserves addresses for `most_bytes` without allocating memory. `budget`: counts the memory of table rows; must
  /// outlive the buffer.
  ReservedBuffer(Device, size_t most_bytes, RowMemory* budget = nullptr);
  ~ReservedBuffer();
  ReservedBuffer(ReservedBuffer&& other) noexcept;
  ReservedBuffer& operator=(ReservedBuffer&&) = delete;

  /// Backs at least the first `bytes` bytes with memory. New memory is zero once the work queued on the device so far
  /// is complete. Never shrinks. Errors: Error(device) if `bytes` exceeds most_bytes() or memory runs out; existing
  /// memory stays usable.
  void grow(size_t bytes);
  /// Like grow(), but adds host memory, page-locked for a GPU. grow() must not be called afterwards. Errors: also
  /// Error(device) if the driver refuses such memory.
  void grow_on_host(size_t bytes);
  /// Moves the bytes from `first` on, with their contents, to host memory. Moves whole allocations, so the move may
  /// begin before `first`. If there is a host budget, grow() makes small allocations, so that few bytes before `first`
  /// are moved. Waits for the stream. No other work on the device may use the bytes. Errors: as grow_on_host(); bytes
  /// that were not moved stay on the device.
  void move_to_host(StreamRef, size_t first);
  /// The number of bytes that move_to_host(first) moves.
  size_t bytes_to_host(size_t first) const { return device_bytes_ - border_at(first); }
  /// Frees all memory and keeps the address range. No work on the device may use the memory any more.
  void release();

  std::byte* data() const { return data_; }
  /// bytes backed by memory: a multiple of the device's allocation granularity
  size_t bytes() const { return bytes_; }
  size_t most_bytes() const { return most_bytes_; }
  /// Size of the device part at the start of the range; the rest of bytes() is host memory.
  size_t device_bytes() const { return device_bytes_; }
  size_t granularity() const;

  // These calls copy or zero [first, first + bytes) in stream order. The range may include device memory, host memory
  // or both. If it includes host memory, the calls wait for the stream; if not, they behave like copy_bytes() and
  // zero_bytes().
  void read(StreamRef, size_t first, void* to, size_t bytes) const;
  void write(StreamRef, size_t first, const void* from, size_t bytes);
  void zero(StreamRef, size_t first, size_t bytes);

 private:
  void expect_growth(size_t wanted) const;
  /// Returns the offset at which the device allocation with byte `first` begins, or device_bytes() if the byte is in no
  /// device allocation.
  size_t border_at(size_t first) const;
  /// Records that the first `bytes` bytes are device memory.
  void set_device_bytes(size_t bytes);

  Device device_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, most_bytes_ = 0, device_bytes_ = 0;
  RowMemory* budget_ = nullptr;
  std::shared_ptr<DeviceAllocator> allocator_;  // null: allocated by the driver
  struct Chunks;
  std::unique_ptr<Chunks> chunks_;  // CUDA: the physical allocations that are mapped
};

}  // namespace hctr
