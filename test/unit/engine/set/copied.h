// Arrays on the device of an EmbeddingSet, for tests.
#pragma once

#include <algorithm>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/stream.h"

namespace hctr::test {

/// A buffer on the set's device with the given values.
template <class T>
class Copied {
 public:
  Copied(Device device, const std::vector<T>& values)
      : stream_{device, nullptr},
        count_(values.size()),
        buffer_(device, std::max<size_t>(1, values.size() * sizeof(T))) {
    if (!values.empty()) copy_bytes(stream_, buffer_.data(), values.data(), values.size() * sizeof(T));
    stream_.synchronize();
  }
  T* data() const { return reinterpret_cast<T*>(buffer_.data()); }
  std::vector<T> values() const {
    std::vector<T> out(count_);
    if (count_ > 0) copy_bytes(stream_, out.data(), buffer_.data(), count_ * sizeof(T));
    stream_.synchronize();
    return out;
  }

 private:
  StreamRef stream_;
  size_t count_;
  Buffer buffer_;
};

}  // namespace hctr::test
