// The ranks of this process, a thread each, and the group that joins them with the ranks of other processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/comm/rank_group.h"

namespace hctr {

class Job {
 public:
  /// One rank per device. `others`: the other processes, null for a single one; outlives the job. `log`: of rank 0, for
  /// warnings about the set-up of the GPUs. `doing`: what the ranks do, for messages.
  Job(std::vector<Device> devices, Processes* others, std::chrono::seconds limit, Log log = Log::silent(),
      std::string doing = "training");

  int first_rank() const { return group_.local_ranks().first; }
  int ranks_here() const { return static_cast<int>(devices_.size()); }
  /// Ranks of the whole job.
  int ranks() const { return group_.local_ranks().total; }

  /// Calls body(communicator, device) for every rank of this process and returns when all have ended. Throws the first
  /// error of any rank. When a rank has failed and another does not end in time, prints the error and ends the process.
  void run(const std::function<void(Communicator&, Device)>& body);

 private:
  std::unique_ptr<Communicator> communicator(int rank, Device);
  void run_rank(int rank, Device, const std::function<void(Communicator&, Device)>& body);

  std::vector<Device> devices_;
  Processes* others_;
  Log log_;
  std::string doing_;
  RankGroup group_;
};

/// Prints an error as the program does and ends all processes of the job with its exit code.
[[noreturn]] void end_job(Processes& others, const Error&) noexcept;

}  // namespace hctr
