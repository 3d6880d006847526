// Processes joined by MPI. Defined where the build has MPI (HCTR_WITH_MPI), called there alone.
#pragma once

#include "comm/processes.h"

namespace hctr {

/// Starts MPI; it ends with the object. Errors: Error(comm).
std::unique_ptr<Processes> start_mpi(std::chrono::seconds limit);

}  // namespace hctr
