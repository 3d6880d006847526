// Processes joined by MPI, which the plug-in contains (core/comm/mpi_plugin.h).
#pragma once

#include <memory>
#include <string>

#include "core/comm/launcher.h"
#include "core/comm/processes.h"
#include "hctr/surroundings.h"

namespace hctr {

/// The reason why MPI cannot join processes: this build has no plug-in, or MPI's library cannot be loaded. Empty if it
/// can. Loads both.
std::string why_no_mpi();

/// Initializes MPI, unless another part of the process has done so. MPI is finalized with the object, except if the job
/// has failed and this process does not end, because MPI waits for all processes. Processes send heartbeats over TCP,
/// like those of start_tcp(); process 0 warns about those that cannot connect. Errors: Error(comm), also if
/// why_no_mpi().
std::unique_ptr<Processes> start_mpi(const Launch&, const JoinLimits&, const Surroundings&);

}  // namespace hctr
