#include "core/device/copy_rows.h"

#include <cstring>

#include "core/base/platform.h"
#include "core/device/copy_bytes.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {

void copy_rows(StreamRef stream, RowsAt<std::byte> to, RowsAt<const std::byte> from, int64_t rows, size_t bytes) {
  if (rows == 0 || bytes == 0) return;
  if (rows == 1 || (to.stride == bytes && from.stride == bytes))
    return copy_bytes(stream, to.first, from.first, static_cast<size_t>(rows) * bytes);
  if (stream.device.is_cuda()) {
    if constexpr (kCudaBuild) cuda::copy_rows(stream, to.first, to.stride, from.first, from.stride, bytes, rows);
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(to.first + static_cast<size_t>(r) * to.stride, from.first + static_cast<size_t>(r) * from.stride,
                bytes);
}

CallerStream::CallerStream(Device device, void* stream) : event_(device) { event_.record({device, stream}); }

}  // namespace hctr
