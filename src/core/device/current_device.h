// Saves and restores the current CUDA device of a caller's thread.
#pragma once

#include "core/device/device.h"

namespace hctr {

/// GPU functions of this library change the calling thread's current device. The destructor restores the device that
/// was current at construction. If that device has no context, the destructor changes nothing, because a new context
/// would occupy device memory. Without a GPU, this object does nothing.
class CurrentDevice {
 public:
  /// `gpu`: whether GPU functions may be called while this object exists. If false, this object does nothing.
  explicit CurrentDevice(bool gpu);
  /// Also makes this device current. Does nothing for the CPU.
  explicit CurrentDevice(Device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;  // the device to restore; -1: none
};

}  // namespace hctr
