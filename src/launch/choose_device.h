// Chooses the devices of a run.
#pragma once

#include <optional>
#include <vector>

#include "config/sections/solver_section.h"
#include "core/base/log.h"
#include "core/comm/processes.h"
#include "core/device/device.h"
#include "hctr/solver.h"

namespace hctr {

/// The index of this process among those that train together.
struct ProcessPlace {
  int process = 0, processes = 1;
  std::optional<Processes::OnHost> on_host = {};
};

/// The device of each rank of this process, for `choice` and the config's "gpu" list: the GPUs of the process, or as
/// many ranks on the CPU. Logs the devices and, when the CPU replaces a GPU, the reason. Errors: Error(device) when
/// `cuda` is requested but missing, or the config names a GPU that does not exist; Error(config) when the lists do not
/// fit the processes.
std::vector<Device> choose_devices(DeviceChoice, const GpuLists&, ProcessPlace, const Log&);

}  // namespace hctr
