// Saves and restores the current CUDA device of a caller's thread.
#pragma once

#include "core/device/device.h"

namespace hctr {

/// GPU calls set the current device of their thread. The destructor restores the device that was current before. If
/// that device has no context, the thread keeps the last device, because restoring would allocate device memory.
/// Without a GPU, this object does nothing.
class CurrentDevice {
 public:
  /// `gpu`: whether GPU calls can follow. If false, this object does nothing.
  explicit CurrentDevice(bool gpu);
  /// Also makes the device current. Does nothing for a CPU.
  explicit CurrentDevice(Device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;  // the device to restore; -1: none
};

}  // namespace hctr
