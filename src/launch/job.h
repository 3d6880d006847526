// The ranks of this process, a thread each, and the group that joins them with the ranks of other processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/comm/rank_group.h"
#include "hctr/surroundings.h"

namespace hctr {

class Job {
 public:
  /// One rank per device. `others`: the other processes, null for a single one; outlives the job. `log`: of rank 0, for
  /// warnings about the set-up of the GPUs. `doing`: what the ranks do, for messages. Of the surroundings the
  /// environment and what the end of a job means are used.
  Job(std::vector<Device> devices, Processes* others, std::chrono::seconds limit, Log log = Log::silent(),
      std::string doing = "training", Surroundings around = {});

  int first_rank() const { return group_.local_ranks().first; }
  int ranks_here() const { return static_cast<int>(devices_.size()); }
  /// Ranks of the whole job.
  int ranks() const { return group_.local_ranks().total; }

  /// Calls body(communicator, device) for every rank of this process and returns when all have ended. Throws the first
  /// error of any rank. When a rank has failed and another does not end in time, the other processes are told to end,
  /// and the surroundings end this one; where they cannot, it waits for that rank.
  void run(const std::function<void(Communicator&, Device)>& body);

 private:
  std::unique_ptr<Communicator> communicator(int rank, Device);
  /// After an error, while a rank still runs.
  void end_with(const Error&);
  void run_rank(int rank, Device, const std::function<void(Communicator&, Device)>& body);

  std::vector<Device> devices_;
  Processes* others_;
  Log log_;
  std::string doing_;
  Surroundings around_;
  RankGroup group_;
};

/// After an error that this process cannot go on from: tells all others to end with its exit code. The surroundings say
/// the error and end this process; where they cannot, it returns.
void end_job(Processes& others, const Error&, const Surroundings&);

}  // namespace hctr
