#include "core/device/copy_bytes.h"

#include <cstring>

#include "core/base/platform.h"
#include "core/device/cuda_runtime_calls.h"
#include "core/device/host_parts.h"

namespace hctr {

void copy_bytes(StreamRef stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  HCTR_EXPECT(!in_host_part(to, bytes) && !in_host_part(from, bytes), bytes,
              " bytes of rows in host memory: use ReservedBuffer::read() or write() to copy them");
  if (stream.device.is_cuda()) {
    if constexpr (kCudaBuild) cuda::copy(stream, to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

bool is_page_locked(Device device, const void* at) {
  if (!device.is_cuda()) return false;
  if constexpr (kCudaBuild) return cuda::is_page_locked(at);
  return false;
}

void zero_bytes(StreamRef stream, void* at, size_t bytes) {
  if (bytes == 0) return;
  HCTR_EXPECT(!in_host_part(at, bytes), bytes,
              " bytes of rows in host memory: use ReservedBuffer::zero() to clear "
              "them");
  if (stream.device.is_cuda()) {
    if constexpr (kCudaBuild) cuda::zero(stream, at, bytes);
  } else {
    std::memset(at, 0, bytes);
  }
}

void zero(StreamRef stream, Tensor tensor) {
  HCTR_EXPECT(tensor.dense(), "zero() needs dense rows, found strided rows of ", to_string(tensor.shape()));
  zero_bytes(stream, tensor.bytes(), tensor.spec().bytes());
}

}  // namespace hctr
