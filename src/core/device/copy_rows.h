// Copying rows between the host and a device, and on a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/stream.h"

namespace hctr {

/// Rows in memory of the host or of a device, `stride` bytes from one to the next.
template <class Byte>
struct RowsAt {
  Byte* first = nullptr;
  size_t stride = 0;
};

/// Copies `rows` rows of `bytes` each in stream order. As copy_bytes(): either end may be on the host.
void copy_rows(StreamRef, RowsAt<std::byte> to, RowsAt<const std::byte> from, int64_t rows, size_t bytes);

/// What a caller queued on a stream of its own: work of other streams can wait for it.
class CallerStream {
 public:
  CallerStream(Device, void* stream);
  /// Work that is queued on `stream` from now on starts after what the caller had queued until the constructor.
  void make_wait(StreamRef stream) const { event_.make_wait(stream); }

 private:
  Event event_;
};

}  // namespace hctr
