// Processes joined by MPI through the plug-in of core/comm/mpi_plugin.h.
#pragma once

#include <memory>
#include <string>

#include "core/comm/launcher.h"
#include "core/comm/processes.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Why MPI cannot join processes: this build has no plug-in, or the MPI library cannot be loaded. Empty if MPI can join
/// processes. Loads both libraries.
std::string why_no_mpi();

/// Initializes MPI unless another part of the process has done so. The destructor finalizes MPI, except if the job has
/// failed and this process continues, because MPI_Finalize waits for all processes. Processes send heartbeats over TCP,
/// as in start_tcp(). Process 0 warns about processes whose heartbeat connection fails. Errors: Error(comm), also if
/// why_no_mpi() is not empty.
std::unique_ptr<Processes> start_mpi(const Launch&, const JoinLimits&, const Surroundings&);

}  // namespace hctr
