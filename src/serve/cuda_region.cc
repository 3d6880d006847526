#include "core/base/expect.h"
#include "core/device/gpu_ipc.h"
#include "serve/serve_status.h"
#include "serve/shared_region.h"

namespace hctr::serve {
namespace {

class CudaRegion : public SharedRegion {
 public:
  CudaRegion(Device device, const std::string& handle, int64_t bytes)
      : device_(device), bytes_(bytes), memory_(device, handle) {}

  Kind kind() const override { return Kind::cuda; }
  int64_t bytes() const override { return bytes_; }
  size_t bytes_of_allocation() const { return memory_.bytes(); }
  Json status() const override {
    Json row{Json::Object{}};
    row.set("device_id", device_.index).set("byte_size", bytes_);
    return row;
  }
  bool read(int64_t first, char* to, size_t bytes) const override {
    memory_.read(static_cast<size_t>(first), to, bytes);
    return true;
  }
  bool write(int64_t first, const char* from, size_t bytes) const override {
    memory_.write(static_cast<size_t>(first), from, bytes);
    return true;
  }

 private:
  Device device_;
  int64_t bytes_;
  IpcMemory memory_;
};

}  // namespace

std::shared_ptr<SharedRegion> open_cuda_region(const std::string& name, const std::string& handle, int64_t device,
                                               int64_t bytes) {
  if (handle.size() != kIpcHandleBytes)
    throw Refusal::invalid("region '", name, "': the CUDA handle has ", handle.size(), " bytes; expected ",
                           kIpcHandleBytes);
  if (bytes <= 0 || bytes > (int64_t{1} << 48))
    throw Refusal::invalid("region '", name, "': ", bytes, " bytes: expected a size above 0 and below 2^48");
  if (device < 0 || device > 1023)
    throw Refusal::invalid("region '", name, "': GPU ", device, ": expected a number from 0 on");
  try {
    auto region = std::make_shared<CudaRegion>(Device{DeviceKind::cuda, static_cast<int>(device)}, handle, bytes);
    if (region->bytes_of_allocation() < static_cast<size_t>(bytes))
      throw Refusal::invalid("region '", name, "': the GPU memory has ", region->bytes_of_allocation(),
                             " bytes, but the region needs ", bytes);
    return region;
  } catch (const Error& error) {
    throw Refusal::invalid("region '", name, "': ", error.what());
  }
}

}  // namespace hctr::serve
