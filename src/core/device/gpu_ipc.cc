#include "core/device/gpu_ipc.h"

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "core/device/copy_bytes.h"
#include "core/device/current_device.h"

namespace hctr {
namespace {

/// Errors: Error(device) if there is no such GPU.
Device expect_gpu(Device device) {
  const GpuSearch found = find_gpus();
  if (found.count == 0)
    throw Error(Kind::device, cat("GPU memory of another process cannot be mapped: ", found.why_none));
  if (!device.is_cuda() || device.index < 0 || device.index >= found.count)
    throw Error(Kind::device, cat("there is no GPU ", device.index, ": this machine has ", found.count,
                                  found.count == 1 ? " (number 0)" : ""));
  return device;
}

IpcMemory::Mapped map_ipc([[maybe_unused]] Device device, [[maybe_unused]] const std::string& handle) {
  const CurrentDevice current(device);
  if constexpr (kCudaBuild) return cuda::open_ipc(device.index, handle);
  return {};
}

}  // namespace

std::string ipc_handle(Device device, [[maybe_unused]] const void* begin) {
  const CurrentDevice current(expect_gpu(device));
  if constexpr (kCudaBuild) return cuda::ipc_handle(device.index, begin);
  return {};
}

IpcMemory::IpcMemory(Device device, const std::string& handle)
    : device_(expect_gpu(device)), mapped_(map_ipc(device, handle)), stream_(device) {}

IpcMemory::~IpcMemory() {
  const CurrentDevice current(device_);
  if constexpr (kCudaBuild) cuda::close_ipc(device_.index, mapped_.data);
}

void IpcMemory::read(size_t first, void* to, size_t bytes) const {
  HCTR_EXPECT(first <= mapped_.bytes && bytes <= mapped_.bytes - first, "bytes ", first, " to ", first + bytes,
              " of an allocation of ", mapped_.bytes);
  const CurrentDevice current(device_);
  copy_bytes(stream_, to, mapped_.data + first, bytes);
  stream_.ref().synchronize();
}

void IpcMemory::write(size_t first, const void* from, size_t bytes) const {
  HCTR_EXPECT(first <= mapped_.bytes && bytes <= mapped_.bytes - first, "bytes ", first, " to ", first + bytes,
              " of an allocation of ", mapped_.bytes);
  const CurrentDevice current(device_);
  copy_bytes(stream_, mapped_.data + first, from, bytes);
  stream_.ref().synchronize();
}

}  // namespace hctr
