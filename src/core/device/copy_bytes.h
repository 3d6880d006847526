// Copies between host and device, and zeroing of memory.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr {

/// Copies bytes in stream order. Source and destination may each be on the host or on the stream's device. Host memory
/// must stay unchanged until the copy is complete. The copy is asynchronous only if the host memory is page-locked
/// (HostBuffer). Neither range may include the host part of a ReservedBuffer.
void copy_bytes(StreamRef, void* to, const void* from, size_t bytes);
/// Whether host memory from any owner is page-locked, so that copies to or from `Device` need no staging buffer. Always
/// false on the CPU.
bool is_page_locked(Device, const void* at);
/// Sets bytes to zero in stream order.
void zero_bytes(StreamRef, void* at, size_t bytes);
/// Zeroes a dense tensor.
void zero(StreamRef, Tensor);

/// Copies the elements of a tensor to the host in order, and synchronizes the stream. For files, metrics and tests.
template <class T>
std::vector<T> to_host(StreamRef stream, Tensor tensor) {
  std::vector<T> out(static_cast<size_t>(tensor.elements()));
  const auto width = static_cast<size_t>(tensor.row_elements()) * sizeof(T);
  if (tensor.dense()) {
    copy_bytes(stream, out.data(), tensor.data<T>(), out.size() * sizeof(T));
  } else {
    for (int64_t r = 0; r < tensor.rows(); ++r)
      copy_bytes(stream, out.data() + r * tensor.row_elements(), tensor.data<T>() + r * tensor.row_stride(), width);
  }
  stream.synchronize();
  return out;
}

/// Copies `values`, one per element, to a tensor, and synchronizes the stream.
template <class T>
void from_host(StreamRef stream, Tensor tensor, const std::vector<T>& values) {
  HCTR_EXPECT(static_cast<int64_t>(values.size()) == tensor.elements(), values.size(), " values for ",
              to_string(tensor.shape()));
  const auto width = static_cast<size_t>(tensor.row_elements()) * sizeof(T);
  for (int64_t r = 0; r < (tensor.dense() ? 1 : tensor.rows()); ++r)
    copy_bytes(stream, tensor.data<T>() + r * tensor.row_stride(), values.data() + r * tensor.row_elements(),
               tensor.dense() ? values.size() * sizeof(T) : width);
  stream.synchronize();
}

}  // namespace hctr
