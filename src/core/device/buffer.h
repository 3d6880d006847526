// Owners of memory: on a device, on the host for copies to a device, and in a reserved range that grows in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/device/row_budget.h"
#include "core/device/stream.h"

namespace hctr {

/// Memory of one device, set to zero, aligned to 256 bytes; that of the AllocatorScope in which it is made, if there is
/// one. Errors: Error(device) with the size requested and the size free.
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
  std::shared_ptr<DeviceAllocator> allocator_;  // null: the driver's
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
///
/// In an AllocatorScope for rows it is one block of all bytes from there. Such memory cannot go to the host.
///
/// Its first bytes are memory of the device. From some multiple of the granularity on, they may be memory of the host,
/// at the same addresses: kernels do not notice. Copies by the host do: they use read(), write() and zero(), which
/// treat both parts; copy_bytes() and zero_bytes() refuse the host part. On the CPU both parts are the same memory, and
/// the rules are kept.
class ReservedBuffer {
 public:
  /// Reserves addresses for `most_bytes`. Allocates no memory. `budget`: where its memory is counted, for rows of
  /// tables; outlives it.
  ReservedBuffer(Device, size_t most_bytes, RowMemory* budget = nullptr);
  ~ReservedBuffer();
  ReservedBuffer(ReservedBuffer&& other) noexcept;
  ReservedBuffer& operator=(ReservedBuffer&&) = delete;

  /// Makes at least the first `bytes` usable. New memory is zero once the work enqueued on the device before is
  /// complete. Never shrinks. Errors: Error(device) beyond most_bytes or if memory runs out; usable memory stays
  /// usable.
  void grow(size_t bytes);
  /// The same with memory of the host, page-locked for a GPU. From then on grow() must not be called. Errors:
  /// Error(device) also where the driver has no such memory.
  void grow_on_host(size_t bytes);
  /// Moves everything from byte `first` on to host memory with its contents, and somewhat more: device memory moves in
  /// the pieces in which it was allocated, and a budget with host memory has small ones. Waits for the stream; no other
  /// work on the device may be using it. Errors: as grow_on_host(); bytes not moved by then stay where they were.
  void move_to_host(StreamRef, size_t first);
  /// The bytes that this moves.
  size_t bytes_to_host(size_t first) const { return device_bytes_ - border_at(first); }
  /// Frees all memory and keeps the addresses reserved. No work on the device may still use the memory.
  void release();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }  ///< usable now: a multiple of the device's allocation granularity
  size_t most_bytes() const { return most_bytes_; }
  /// The first bytes, which are memory of the device; the others are memory of the host.
  size_t device_bytes() const { return device_bytes_; }
  size_t granularity() const;

  // Copies of [first, first + bytes), in either part or across the border, after the work queued on the stream. They
  // wait for the stream where they reach host memory; otherwise as copy_bytes() and zero_bytes().
  void read(StreamRef, size_t first, void* to, size_t bytes) const;
  void write(StreamRef, size_t first, const void* from, size_t bytes);
  void zero(StreamRef, size_t first, size_t bytes);

 private:
  void expect_growth(size_t wanted) const;
  /// The begin of the device piece that holds byte `first`; its end if none does.
  size_t border_at(size_t first) const;
  /// Records that the device has the first `bytes` of the usable memory.
  void set_device_bytes(size_t bytes);

  Device device_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, most_bytes_ = 0, device_bytes_ = 0;
  RowMemory* budget_ = nullptr;
  std::shared_ptr<DeviceAllocator> allocator_;  // null: the driver's
  struct Chunks;
  std::unique_ptr<Chunks> chunks_;  // CUDA: the physical allocations mapped so far
};

/// Whether any of these bytes are host memory of a ReservedBuffer.
bool in_host_part(const void* first, size_t bytes);

}  // namespace hctr
