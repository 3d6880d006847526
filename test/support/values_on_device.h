// Arrays in device memory, for tests of operators that take pointers.
#pragma once

#include <algorithm>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "support/devices.h"

namespace hctr::test {

/// A device buffer with these values.
template <class T>
struct ValuesOnDevice {
  ValuesOnDevice(Device device, const std::vector<T>& values)
      : buffer(device, std::max<size_t>(1, values.size()) * sizeof(T)), count(values.size()) {
    const StreamRef stream = runtime_of(device).compute_stream();
    copy_bytes(stream, buffer.data(), values.data(), count * sizeof(T));
    stream.synchronize();
  }
  T* data() const { return reinterpret_cast<T*>(buffer.data()); }
  Tensor tensor(Shape shape) const { return Tensor(buffer.data(), TensorSpec(kDTypeOf<T>, shape), buffer.device()); }
  std::vector<T> host() const {
    return to_host<T>(runtime_of(buffer.device()).compute_stream(), tensor({static_cast<int64_t>(count)}));
  }
  Buffer buffer;
  size_t count;
};

}  // namespace hctr::test
