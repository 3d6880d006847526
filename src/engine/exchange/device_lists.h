// Device arrays that are written once, when a step is planned.
#pragma once

#include <algorithm>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/copy_bytes.h"

namespace hctr {

class DeviceLists {
 public:
  /// Copies the values and synchronizes the stream. The array lives as long as this object.
  template <class T>
  const T* put(Runtime& runtime, const std::vector<T>& values) {
    const Buffer& memory = lists_.emplace_back(runtime.device(), std::max<size_t>(1, values.size()) * sizeof(T));
    copy_bytes(runtime.compute_stream(), memory.data(), values.data(), values.size() * sizeof(T));
    runtime.compute_stream().synchronize();
    return reinterpret_cast<const T*>(memory.data());
  }

 private:
  std::vector<Buffer> lists_;
};

}  // namespace hctr
