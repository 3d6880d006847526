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

/// The index of this process among the processes of the job.
struct ProcessPlace {
  int process = 0, processes = 1;
  std::optional<Processes::OnHost> on_host = {};
};

/// The device of each rank of this process, according to the DeviceChoice and the config's "gpu" list: the GPUs of the
/// process, or the same number of ranks on the CPU. Logs the devices and, if the CPU replaces a GPU, the reason.
/// Errors: Error(device) if `cuda` is requested but missing, or the config names a GPU that does not exist;
/// Error(config) if the lists do not match the processes.
std::vector<Device> choose_devices(DeviceChoice, const GpuLists&, ProcessPlace, const Log&);

}  // namespace hctr
