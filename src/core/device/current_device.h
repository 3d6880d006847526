// The current device of a thread that belongs to somebody else.
#pragma once

#include "core/device/device.h"

namespace hctr {

/// Calls on a GPU set the current device of the thread that makes them. While this object lives they may; then the
/// device that was current before is current again. Where nobody has used that one, so that it has no context, the
/// thread keeps the last one: to set it would take memory there. Without a GPU it does nothing.
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
