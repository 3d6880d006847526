// How this process was started: alone, or by a launcher as one of several, which it tells by environment variables.
#pragma once

#include <optional>
#include <string>

#include "hctr/surroundings.h"

namespace hctr {

/// A process among those of a job.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun", or "RANK and WORLD_SIZE"
  int process = 0, processes = 1;
  /// Among the processes of this host, where the launcher says it.
  std::optional<int> local_process = {}, local_processes = {};
  bool by_mpi = false;  ///< MPI joins the processes
  /// Where process 0 waits for the others, without MPI.
  std::string address = {};
  int port = 0;
  std::string job = {};     ///< what tells this job from others, where the launcher says it
  std::string secret = {};  ///< core/comm/job_secret.h; empty: none
};

/// Nothing if this process was started alone, as it was without an environment. Of several launchers whose variables
/// are set the innermost counts: mpirun before RANK and WORLD_SIZE before srun. Errors: Error(usage) naming the
/// variable that is missing or is not a number, or too large; those of find_job_secret(). `over_tcp`: mpirun only
/// starts and numbers the processes, and they join over TCP; needs MASTER_ADDR and MASTER_PORT, but in a step of Slurm,
/// which says where process 0 is.
std::optional<Launch> find_launch(const Environment&, bool over_tcp = false);

/// The first host of a Slurm node list: "gpu[07-09,12],login" is gpu07.
std::string first_host(const std::string& node_list);

}  // namespace hctr
