// Detects from environment variables whether a launcher started this process as one of several.
#pragma once

#include <optional>
#include <string>

#include "hctr/surroundings.h"

namespace hctr {

/// The position of this process in its job.
struct Launch {
  std::string launcher;  ///< "mpirun", "srun", or "RANK and WORLD_SIZE"
  int process = 0, processes = 1;
  /// The index of this process on its host and the number of processes on that host, if the launcher sets them.
  std::optional<int> local_process = {}, local_processes = {};
  bool by_mpi = false;  ///< whether MPI joins the processes
  /// Without MPI: the address on which process 0 waits for the other processes.
  std::string address = {};
  int port = 0;
  std::string job = {};     ///< identifies the job, if the launcher sets it
  std::string secret = {};  ///< see core/comm/job_secret.h; empty: none
};

/// Returns nullopt if this process was started alone or `environment` is empty. If variables of several launchers are
/// set, the innermost launcher is used: first mpirun, then RANK and WORLD_SIZE, then srun. `over_tcp`: mpirun only
/// starts and numbers the processes, which join over TCP. TCP needs MASTER_ADDR and MASTER_PORT, except in a Slurm
/// step, where Slurm's variables define the address of process 0. Errors: Error(usage) naming the variable that is
/// missing, not a number or too large; those of find_job_secret().
std::optional<Launch> find_launch(const Environment&, bool over_tcp = false);

/// The first host of a Slurm node list: "gpu[07-09,12],login" is gpu07.
std::string first_host(const std::string& node_list);

}  // namespace hctr
