// Who owns memory: bytes on one device, host memory the device can copy from, and a range that grows in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/device.h"

namespace hctr {

/// Bytes on one device, set to zero, aligned to 256. Errors: Error(device) with what was asked for and what is free.
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

/// Host memory, set to zero; page-locked when `near` is a GPU, so that copies to it run by themselves.
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

/// An address range reserved once and filled with memory as needed: growing moves nothing, so recorded work that points
/// into it stays valid. On CUDA through the driver's virtual memory calls, on the CPU through mmap.
class ReservedBuffer {
 public:
  /// Reserves addresses for `most_bytes`; takes no memory yet.
  ReservedBuffer(Device, size_t most_bytes);
  ~ReservedBuffer();
  ReservedBuffer(ReservedBuffer&& other) noexcept;
  ReservedBuffer& operator=(ReservedBuffer&&) = delete;

  /// Makes at least the first `bytes` usable; new memory is zero once work queued on the device so far is done.
  /// Never shrinks. Errors: Error(device) beyond most_bytes or when memory is short; what was usable stays so.
  void grow(size_t bytes);
  /// Gives all memory back and keeps the addresses. The caller makes sure that no work uses it any more.
  void release();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }  ///< usable now, a multiple of the device's granule
  size_t most_bytes() const { return most_bytes_; }

 private:
  Device device_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, most_bytes_ = 0;
  struct Chunks;
  std::unique_ptr<Chunks> chunks_;  // CUDA: the physical pieces mapped so far
};

}  // namespace hctr
