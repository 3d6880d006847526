// GPU memory that processes of one host share (CUDA IPC).
#pragma once

#include <cstddef>
#include <string>

#include "core/device/stream.h"

namespace hctr {

inline constexpr size_t kIpcHandleBytes = 64;

/// The handle by which other processes can map an allocation of this process. `begin`: the first byte of the
/// allocation. Errors: Error(device).
std::string ipc_handle(Device, const void* begin);

/// An allocation of another process, mapped into this process. Thread-safe. If the other process frees the allocation
/// while it is mapped, CUDA leaves the result of a copy undefined.
class IpcMemory {
 public:
  /// Errors: Error(device) if the build or the machine lacks the GPU, or if the driver cannot open the handle. The
  /// driver cannot open a handle of this process.
  IpcMemory(Device, const std::string& handle);
  ~IpcMemory();
  IpcMemory(const IpcMemory&) = delete;
  IpcMemory& operator=(const IpcMemory&) = delete;

  /// The size of the whole allocation.
  size_t bytes() const { return mapped_.bytes; }
  // These calls copy [first, first + bytes), which must lie in the allocation, and wait until the copy is complete.
  // Errors: Error(device).
  void read(size_t first, void* to, size_t bytes) const;
  void write(size_t first, const void* from, size_t bytes) const;

  struct Mapped {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };

 private:
  Device device_;
  Mapped mapped_;
  Stream stream_;
};

namespace cuda {
// only in CUDA builds
std::string ipc_handle(int index, const void* begin);
IpcMemory::Mapped open_ipc(int index, const std::string& handle);
void close_ipc(int index, std::byte* data) noexcept;
}  // namespace cuda

}  // namespace hctr
