// Device memory reserved for work that must not fail when the device is out of memory, such as saving a model.
#pragma once

#include <cstddef>

#include "core/device/buffer.h"

namespace hctr {

/// Not thread-safe.
class HeldMemory {
 public:
  /// Replaces the reserved memory by `bytes` bytes. No HeldBuffer may exist. Errors: those of Buffer.
  void hold(Device, size_t bytes);
  size_t bytes() const { return memory_.bytes(); }

  /// Returns `bytes` bytes of the reserve, or null if the reserve has too few free bytes. Every successful take() needs
  /// a give_back(); HeldBuffer makes both calls. After the last give_back() the whole reserve is free again.
  std::byte* take(size_t bytes);
  void give_back();

 private:
  Buffer memory_;
  size_t used_ = 0;
  int takers_ = 0;
};

/// A buffer that uses the reserve if enough of it is free, and otherwise allocates memory. Not zeroed.
class HeldBuffer {
 public:
  HeldBuffer(HeldMemory&, Device, size_t bytes);
  ~HeldBuffer();
  HeldBuffer(HeldBuffer&&) noexcept;
  HeldBuffer& operator=(HeldBuffer&&) = delete;

  std::byte* data() const { return data_; }
  Device device() const { return device_; }

 private:
  HeldMemory* from_ = nullptr;  // null: own_ is used
  Buffer own_;
  Device device_;
  std::byte* data_ = nullptr;
};

}  // namespace hctr
