// The ranks of this process, one thread each, and the group that joins them with the ranks of other processes.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/comm/rank_group.h"
#include "hctr/surroundings.h"

namespace hctr {

class Job {
 public:
  /// Creates one rank per device. `others`: the other processes, or null; must outlive the job. `log`: rank 0's log,
  /// for warnings about the GPU set-up. `doing`: the activity of the ranks, for messages. Of `around`, only the
  /// environment, set_environment(), on_lost_peer() and end_process() are used.
  Job(std::vector<Device> devices, Processes* others, std::chrono::seconds limit, Log log = Log::silent(),
      std::string doing = "training", Surroundings around = {});
  /// Ends the threads of the ranks.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int first_rank() const { return group_.local_ranks().first; }
  int ranks_here() const { return static_cast<int>(devices_.size()); }
  /// The number of ranks of the whole job.
  int ranks() const { return group_.local_ranks().total; }

  using Body = std::function<void(Communicator&, Device)>;
  /// Calls body(communicator, device) for every rank of this process, and returns when all ranks have returned. Throws
  /// the first error of any rank. If a rank has failed and another rank does not return in time, the function ends the
  /// other processes, and the surroundings end this process. If the surroundings cannot end this process, the function
  /// waits for the late rank.
  ///
  /// May be called repeatedly; each rank keeps its communicator and its thread. If this process has only one rank, the
  /// rank runs in the caller's thread. After a rank has failed, later calls throw the same error without calling body.
  void run(const Body& body);
  /// Like run(), but also calls body after a rank has failed, to destroy the ranks' objects. Ignores errors of body.
  void clean_up(const Body& body) noexcept;
  /// Called by a rank in run(). Runs body() in the thread that called run(), and waits for it. An exception of body()
  /// is a bug.
  void in_callers_thread(const std::function<void()>& body);

 private:
  /// The communicator of a rank of this process, created at its first run.
  Communicator& communicator(int rank, Device);
  std::unique_ptr<Communicator> make_communicator(int rank, Device);
  /// Ends the job after an error, while some rank still runs.
  void end_with(const Error&);
  void run_rank(int local_rank, const Body& body);
  /// Errors: Error(device) if the system cannot create a thread; the thread's rank then counts as failed.
  void start_threads();
  void work(int local_rank);
  /// Calls body(local rank) in the thread of each rank. Returns when all ranks have returned. `ends`: whether ranks
  /// must return soon after a failure.
  void in_threads(const std::function<void(int)>& body, bool ends);

  std::vector<Device> devices_;
  Processes* others_;
  Log log_;
  std::string doing_;
  Surroundings around_;
  RankGroup group_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  // [local rank]

  // Used if this process has several ranks, which have one thread each.
  std::mutex mutex_;
  std::condition_variable change_;
  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;  // every thread calls it; null: the threads must end
  uint64_t round_ = 0;                              // number of the current round of work
  int ended_ = 0;                                   // threads that have finished the current round
  const std::function<void()>* for_caller_ = nullptr;
};

/// Called after a fatal error of this process. Ends all other processes with the error's exit code. The surroundings
/// report the error and end this process; if they cannot, the function returns.
void end_job(Processes& others, const Error&, const Surroundings&);

}  // namespace hctr
