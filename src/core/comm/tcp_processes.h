// Processes joined over TCP, without MPI.
#pragma once

#include <memory>

#include "core/comm/launcher.h"
#include "core/comm/processes.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Joins the processes of a launch. While the job runs, each process sends a heartbeat every second. If a process ends
/// or misses heartbeats for `limits.silence`, the job ends even if processes are blocked. `Surroundings` defines how
/// this process ends (core/comm/watch.h). Errors: those of join_job().
std::unique_ptr<Processes> start_tcp(const Launch&, const JoinLimits&, const Surroundings&);

}  // namespace hctr
