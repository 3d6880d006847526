#include "core/device/gpu_ipc.h"

#include <cstring>

#include "core/device/cuda_check.cuh"
#include "core/device/driver_function.cuh"

namespace hctr::cuda {

static_assert(sizeof(cudaIpcMemHandle_t) == kIpcHandleBytes);

std::string ipc_handle(int index, const void* begin) {
  HCTR_CHECK(cudaSetDevice(index));
  cudaIpcMemHandle_t handle{};
  HCTR_CHECK(cudaIpcGetMemHandle(&handle, const_cast<void*>(begin)));
  return {reinterpret_cast<const char*>(&handle), sizeof handle};
}

IpcMemory::Mapped open_ipc(int index, const std::string& bytes) {
  HCTR_CHECK(cudaSetDevice(index));
  HCTR_EXPECT(bytes.size() == kIpcHandleBytes, "an IPC handle of ", bytes.size(), " bytes");
  cudaIpcMemHandle_t handle{};
  std::memcpy(&handle, bytes.data(), sizeof handle);
  void* data = nullptr;
  HCTR_CHECK(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess));
  try {
    static const auto range = driver<decltype(cuMemGetAddressRange)>("cuMemGetAddressRange");
    CUdeviceptr begin = 0;
    size_t size = 0;
    HCTR_CHECK(range(&begin, &size, reinterpret_cast<CUdeviceptr>(data)));
    const size_t before = reinterpret_cast<CUdeviceptr>(data) - begin;
    return {static_cast<std::byte*>(data), size - before};
  } catch (...) {
    close_ipc(index, static_cast<std::byte*>(data));
    throw;
  }
}

void close_ipc(int index, std::byte* data) noexcept {
  cudaSetDevice(index);
  cudaIpcCloseMemHandle(data);
}

}  // namespace hctr::cuda
