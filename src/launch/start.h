// Starts a command that uses a model: joins processes, chooses devices and creates ranks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "core/comm/rank_group.h"
#include "hctr/solver.h"
#include "launch/choose_device.h"
#include "launch/job.h"

namespace hctr {

/// A log that forwards only errors to the given log. For ranks other than 0.
Log errors_only(const Log&);

/// Calls body(others). `others`: the other processes if several were started together (mpirun), or null. An error ends
/// all processes; if the surroundings do not end this process, the error is thrown.
void run_in_processes(const JobOptions&, const std::function<void(Processes* others)>& body);

/// Joins the other processes of the job. For callers that need `Processes` longer than one call of run_in_processes().
/// Returns null if this process is the only one. Errors: Error(comm).
std::unique_ptr<Processes> join_processes(const JobOptions&);
/// Calls body(). An error ends all processes of the job, if `others` is not null.
void or_end_job(const JobOptions&, Processes* others, const std::function<void()>& body);

inline ProcessPlace place_of(const Processes* others) {
  return others ? ProcessPlace{others->process(), others->count(), others->on_host()} : ProcessPlace{};
}

/// Like place_of(), but numbers processes as the launcher does. The "gpu" lists of a config refer to these numbers.
inline ProcessPlace launched_place_of(const Processes* others) {
  return others ? ProcessPlace{others->launched().process, others->launched().count, others->on_host()}
                : ProcessPlace{};
}

/// The number of threads per rank in a process with `ranks` ranks. `usable`: number of the host's `all` cores that this
/// process may use. `processes`: number of processes that share the host. Cores that the launcher has assigned to this
/// process alone are not divided again.
int threads_of_rank(int usable, int all, int processes, int ranks);

/// The ranks of this process, on the devices chosen by options and config. `doing`: an activity for messages, such as
/// "training".
struct Ranks {
  Ranks(const JobOptions&, const Config&, Processes* others, const Log& log, std::string doing);

  std::vector<Device> devices;
  int threads;  ///< CPU threads per rank, for operators
  Job job;
};

}  // namespace hctr
