// Which device a run uses.
#pragma once

#include "base/log.h"
#include "device/device.h"
#include "hctr/solver.h"
#include "model/solver_clause.h"

namespace hctr {

/// The device for `choice` and the config's "gpu" list; says on the log what is used and, when the CPU stands in for a GPU,
/// why. Errors: Error(device) when `cuda` is asked for and there is none, or the config names one that does not exist.
Device choose_device(DeviceChoice, const GpuLists&, const Log&);

}  // namespace hctr
