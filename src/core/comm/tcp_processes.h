// Processes joined over TCP, without MPI.
#pragma once

#include <memory>

#include "core/comm/launcher.h"
#include "core/comm/processes.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Joins the processes of a launch. While the job runs, each sends a heartbeat every second. If a process ends, or if
/// it is silent for too long, the job ends, whatever the processes are doing, as the surroundings define
/// (core/comm/watch.h). Errors: those of join_job().
std::unique_ptr<Processes> start_tcp(const Launch&, const JoinLimits&, const Surroundings&);

}  // namespace hctr
