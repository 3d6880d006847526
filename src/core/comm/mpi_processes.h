// Processes joined by MPI, which the plug-in contains (core/comm/mpi_plugin.h).
#pragma once

#include <memory>
#include <string>

#include "core/comm/launcher.h"
#include "core/comm/processes.h"
#include "hctr/surroundings.h"

namespace hctr {

/// Why MPI cannot join processes here: this build has no plug-in, or MPI's library cannot be loaded. Empty if it can.
/// Loads both.
std::string why_no_mpi();

/// Initializes MPI, unless another part of the process has done so; then MPI is finalized with the object, but not
/// where the job has failed and nothing ends this process, since MPI waits for all. The processes give signs of life
/// over TCP, as those of start_tcp() do; process 0 warns of those that cannot connect. Errors: Error(comm), also if
/// why_no_mpi().
std::unique_ptr<Processes> start_mpi(const Launch&, const JoinLimits&, const Surroundings&);

}  // namespace hctr
