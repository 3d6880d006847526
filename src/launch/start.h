// The start of every command that uses a model: its processes, devices and ranks.
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

/// A log that passes only errors on, for ranks other than 0.
Log errors_only(const Log&);

/// Calls body(others): null, or the other processes if several were started together (mpirun). An error ends all of
/// them; it is thrown if the surroundings do not end this process.
void run_in_processes(const JobOptions&, const std::function<void(Processes* others)>& body);

// The same in two parts, for callers that stay joined longer.
/// The other processes; null if this one is alone. Errors: Error(comm).
std::unique_ptr<Processes> join_processes(const JobOptions&);
/// Calls body(). An error ends all processes, if there are `others`.
void or_end_job(const JobOptions&, Processes* others, const std::function<void()>& body);

inline ProcessPlace place_of(const Processes* others) {
  return others ? ProcessPlace{others->process(), others->count(), others->on_host()} : ProcessPlace{};
}

/// The same with the launcher's numbering, to which the lists of "gpu" refer.
inline ProcessPlace launched_place_of(const Processes* others) {
  return others ? ProcessPlace{others->launched().process, others->launched().count, others->on_host()}
                : ProcessPlace{};
}

/// The number of threads of each of `ranks` ranks of a process that may use `usable` of the `all` cores of its host,
/// shared by `processes` processes. Cores that the launcher has assigned to this process alone are not divided again.
int threads_of_rank(int usable, int all, int processes, int ranks);

/// The ranks of this process on the devices that options and config choose. `doing`: for messages, "training".
struct Ranks {
  Ranks(const JobOptions&, const Config&, Processes* others, const Log& log, std::string doing);

  std::vector<Device> devices;
  int threads;  ///< per rank, for operators on a CPU
  Job job;
};

}  // namespace hctr
