// The ranks of this process, each in a thread of its own, and what joins them with each other and with those of other
// processes.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/log.h"
#include "comm/communicator.h"
#include "comm/rank_group.h"

namespace hctr {

class Job {
 public:
  /// A rank for each device. `others` (none where this process is alone) outlives it. `log`: of rank 0, told of what is
  /// amiss with the GPUs' set-up.
  Job(std::vector<Device> devices, Processes* others, std::chrono::seconds limit, Log log = Log::silent());

  int first_rank() const { return group_.local_ranks().first; }
  int ranks_here() const { return static_cast<int>(devices_.size()); }
  /// Of the whole job.
  int ranks() const { return group_.local_ranks().total; }

  /// Calls body(communicator, device) for every rank of this process and returns when all have ended. Throws the first
  /// error of any rank. Where a rank hangs and cannot be woken while another has failed, prints the error and ends the
  /// process.
  void run(const std::function<void(Communicator&, Device)>& body);

 private:
  std::unique_ptr<Communicator> communicator(int rank, Device);
  void run_rank(int rank, Device, const std::function<void(Communicator&, Device)>& body);

  std::vector<Device> devices_;
  Processes* others_;
  Log log_;
  RankGroup group_;
};

/// Prints an error as the program does and ends all processes of the job with its exit code.
[[noreturn]] void end_job(Processes& others, const Error&) noexcept;

}  // namespace hctr
