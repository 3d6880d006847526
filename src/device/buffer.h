// Owners of memory: on a device, on the host for copies to a device, and in a reserved range that grows in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/device.h"

namespace hctr {

/// Memory of one device, set to zero, aligned to 256 bytes. Errors: Error(device) with the size requested and the size
/// free.
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
};

/// Host memory, set to zero. If `near` is a GPU it is page-locked, so that copies are asynchronous.
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

/// An address range that is reserved once and backed by memory as needed. Growing does not move data, so recorded work
/// that points into it stays valid. Uses the driver's virtual memory management on CUDA, and mmap on the CPU.
class ReservedBuffer {
 public:
  /// Reserves addresses for `most_bytes`. Allocates no memory.
  ReservedBuffer(Device, size_t most_bytes);
  ~ReservedBuffer();
  ReservedBuffer(ReservedBuffer&& other) noexcept;
  ReservedBuffer& operator=(ReservedBuffer&&) = delete;

  /// Makes at least the first `bytes` usable. New memory is zero once the work enqueued on the device before is
  /// complete. Never shrinks. Errors: Error(device) beyond most_bytes or if memory runs out; usable memory stays
  /// usable.
  void grow(size_t bytes);
  /// Frees all memory and keeps the addresses reserved. No work on the device may still use the memory.
  void release();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }  ///< usable now: a multiple of the device's allocation granularity
  size_t most_bytes() const { return most_bytes_; }

 private:
  Device device_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, most_bytes_ = 0;
  struct Chunks;
  std::unique_ptr<Chunks> chunks_;  // CUDA: the physical allocations mapped so far
};

}  // namespace hctr
