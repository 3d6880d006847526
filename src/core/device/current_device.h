// The current device of a thread that belongs to somebody else.
#pragma once

#include "core/device/device.h"

namespace hctr {

/// GPU calls set the current device of their thread. This object allows that and restores the previous device at its
/// end. If the previous device has no context because it was never used, the thread keeps the last one, since setting
/// it would allocate memory there. Without a GPU it does nothing.
class CurrentDevice {
 public:
  /// `gpu`: whether there can be such calls; else it does nothing.
  explicit CurrentDevice(bool gpu);
  /// Also makes the device current now. For a CPU it does nothing.
  explicit CurrentDevice(Device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = -1;  // none
};

}  // namespace hctr
