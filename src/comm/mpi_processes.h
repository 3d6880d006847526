// Processes joined by MPI. Only builds with MPI (HCTR_WITH_MPI) define and call this.
#pragma once

#include "comm/launcher.h"
#include "comm/processes.h"

namespace hctr {

/// Initializes MPI, which is finalized with the object. Errors: Error(comm).
std::unique_ptr<Processes> start_mpi(const Launch&, std::chrono::seconds limit);

}  // namespace hctr
