// Copies rows between host and device, and within a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/stream.h"

namespace hctr {

/// Rows in host or device memory. `stride`: bytes between the starts of adjacent rows.
template <class Byte>
struct RowsAt {
  Byte* first = nullptr;
  size_t stride = 0;
};

/// Copies `rows` rows of `bytes` bytes each in stream order. Source and destination may each be on the host or on the
/// device, as in copy_bytes().
void copy_rows(StreamRef, RowsAt<std::byte> to, RowsAt<const std::byte> from, int64_t rows, size_t bytes);

/// Marks a point in a stream that the library's caller owns: the end of all work queued there before the constructor.
/// Other streams can wait for that point.
class CallerStream {
 public:
  CallerStream(Device, void* stream);
  /// Makes all later work of `stream` wait for the marked point.
  void make_wait(StreamRef stream) const { event_.make_wait(stream); }

 private:
  Event event_;
};

}  // namespace hctr
