// Joins this process with the others that were started with it.
#include "base/error.h"
#include "base/platform.h"
#include "comm/mpi_processes.h"
#include "comm/tcp_processes.h"

namespace hctr {

std::unique_ptr<Processes> started_processes(const JoinLimits& limits, const Log& log) {
  const std::optional<Launch> launch = find_launch(system_environment(), limits.over_tcp);
  if (!launch) return nullptr;
  if (!launch->by_mpi) return start_tcp(*launch, limits, log);
  if constexpr (kMpiBuild) {
    auto processes = start_mpi(*launch, limits.step);
    if (processes->count() == launch->processes) return processes;
    throw Error(Kind::usage,
                cat("started as ", launch->processes, " processes, but this program's MPI sees ", processes->count(),
                    ": mpirun belongs to another MPI than the program was built with"));
  }
  throw Error(
      Kind::usage,
      cat("started as ", launch->processes,
          " processes, but this build contains no MPI: set MASTER_ADDR and MASTER_PORT, by which processes join "
          "over TCP, or build it where MPI is found (-DHCTR_MPI=ON says why it is not)"));
}

}  // namespace hctr
