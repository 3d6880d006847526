// Processes joined by MPI, which the plug-in contains (comm/mpi_plugin.h).
#pragma once

#include "comm/launcher.h"
#include "comm/processes.h"

namespace hctr {

/// Why MPI cannot join processes here: this build has no plug-in, or MPI's library cannot be loaded. Empty if it can.
/// Loads both.
std::string why_no_mpi();

/// Initializes MPI, which is finalized with the object. Errors: Error(comm), also if why_no_mpi().
std::unique_ptr<Processes> start_mpi(const Launch&, std::chrono::seconds limit);

}  // namespace hctr
