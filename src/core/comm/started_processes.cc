// Joins this process with the processes that the launcher started together with it.
#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/comm/mpi_processes.h"
#include "core/comm/tcp_processes.h"

namespace hctr {
namespace {

/// Like find_launch(). Errors name this host, because the output of all processes often goes to one file.
std::optional<Launch> launch_of_this_process(const Environment& environment, bool over_tcp) {
  return in_context([] { return cat("reading the launcher's variables on ", host_name()); },
                    [&] { return find_launch(environment, over_tcp); });
}

/// Called if MPI cannot be loaded. Returns a launch that joins over TCP, if the environment has an address.
Launch without_mpi(const Launch& launch, const Environment& environment, const std::string& why) {
  if (environment("MASTER_ADDR") || environment("MASTER_PORT") || environment("SLURM_STEP_ID"))
    if (const auto over_tcp = find_launch(environment, true)) return *over_tcp;
  throw Error(Kind::usage,
              cat("started by ", launch.launcher, " as ", launch.processes, " processes, but ", why,
                  "; set MASTER_ADDR and MASTER_PORT to join by TCP (mpirun -x MASTER_ADDR -x MASTER_PORT)"));
}

}  // namespace

std::unique_ptr<Processes> started_processes(const JoinLimits& limits, const Surroundings& around) {
  const std::optional<Launch> launch = launch_of_this_process(around.environment, limits.over_tcp);
  if (!launch) return nullptr;
  if (!launch->by_mpi) return start_tcp(*launch, limits, around);
  if (const std::string why = why_no_mpi(); !why.empty())
    return start_tcp(without_mpi(*launch, around.environment, why), limits, around);
  auto processes = start_mpi(*launch, limits, around);
  if (processes->count() == launch->processes) return processes;
  throw Error(Kind::usage,
              cat("started as ", launch->processes, " processes, but this program's MPI sees ", processes->count(),
                  ": mpirun belongs to a different MPI than the program was built with"));
}

}  // namespace hctr
