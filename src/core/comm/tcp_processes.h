// Processes joined over TCP, without MPI.
#pragma once

#include <memory>

#include "core/comm/launcher.h"
#include "core/comm/processes.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Joins the processes of a launch. While the job runs, each of them gives a sign of life every second: one that has
/// ended, or whose host or network is silent for too long, ends the job, whatever the processes are doing, as the
/// surroundings say (core/comm/watch.h). Errors: those of join_job().
std::unique_ptr<Processes> start_tcp(const Launch&, const JoinLimits&, const Surroundings&);

}  // namespace hctr
