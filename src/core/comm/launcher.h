// Detects from environment variables how this process was started: alone, or as one of several by a launcher.
#pragma once

#include <optional>
#include <string>

#include "hctr/surroundings.h"

namespace hctr {

/// A process among those of a job.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun", or "RANK and WORLD_SIZE"
  int process = 0, processes = 1;
  /// The number among the processes of this host, if the launcher sets it.
  std::optional<int> local_process = {}, local_processes = {};
  bool by_mpi = false;  ///< MPI joins the processes
  /// The address where process 0 waits for the others, without MPI.
  std::string address = {};
  int port = 0;
  std::string job = {};     ///< identifies the job, if the launcher sets it
  std::string secret = {};  ///< core/comm/job_secret.h; empty: none
};

/// Nothing if this process was started alone, or without an environment. If variables of several launchers are set, the
/// innermost counts: mpirun before RANK and WORLD_SIZE before srun. `over_tcp`: mpirun only starts and numbers the
/// processes, and they join over TCP; this needs MASTER_ADDR and MASTER_PORT, except in a step of Slurm, which sets the
/// address of process 0. Errors: Error(usage) naming the variable that is missing, not a number or too large; those of
/// find_job_secret().
std::optional<Launch> find_launch(const Environment&, bool over_tcp = false);

/// The first host of a Slurm node list: "gpu[07-09,12],login" is gpu07.
std::string first_host(const std::string& node_list);

}  // namespace hctr
