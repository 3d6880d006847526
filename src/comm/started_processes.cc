// Finds out whether this process is one of several that a launcher started.
#include <cstdlib>

#include "base/error.h"
#include "base/platform.h"
#include "comm/mpi_processes.h"

namespace hctr {
namespace {

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : 0;
}

/// From the environment variables that the launchers of Open MPI, MPICH and its derivatives, and Slurm with PMIx set.
int processes_started() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const int size = number_of(variable)) return size;
  return std::getenv("PMIX_RANK") ? number_of("SLURM_NTASKS") : 1;
}

}  // namespace

std::unique_ptr<Processes> started_processes(std::chrono::seconds limit) {
  const int size = processes_started();
  if (size <= 1) return nullptr;
  if constexpr (kMpiBuild) {
    auto processes = start_mpi(limit);
    if (processes->count() == size) return processes;
    throw Error(Kind::usage, cat("started as ", size, " processes, but this program's MPI sees ", processes->count(),
                                 ": mpirun belongs to another MPI than the program was built with"));
  }
  throw Error(Kind::usage,
              cat("started as ", size,
                  " processes, but this build contains no MPI: run it without mpirun, or build it where MPI is found "
                  "(-DHCTR_MPI=ON says why it is not)"));
}

}  // namespace hctr
