// Device memory reserved for work that must not fail once the device has no more, such as saving a model.
#pragma once

#include <cstddef>

#include "core/device/buffer.h"

namespace hctr {

/// Used by one thread.
class HeldMemory {
 public:
  /// Reserves this much. Errors: those of Buffer.
  void hold(Device, size_t bytes);
  size_t bytes() const { return memory_.bytes(); }

 private:
  friend class HeldBuffer;
  std::byte* take(size_t bytes);
  void give_back();

  Buffer memory_;
  size_t used_ = 0;
  int takers_ = 0;
};

/// A buffer in reserved memory if that has capacity, else in memory of its own. It is not zeroed. Reserved memory is
/// free again when no HeldBuffer exists.
class HeldBuffer {
 public:
  HeldBuffer(HeldMemory&, Device, size_t bytes);
  ~HeldBuffer();
  HeldBuffer(HeldBuffer&&) noexcept;
  HeldBuffer& operator=(HeldBuffer&&) = delete;

  std::byte* data() const { return data_; }
  Device device() const { return device_; }

 private:
  HeldMemory* from_ = nullptr;  // null: own_
  Buffer own_;
  Device device_;
  std::byte* data_ = nullptr;
};

}  // namespace hctr
