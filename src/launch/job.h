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
  /// One rank per device. `others`: the other processes, null for a single one; outlives the job. `log`: of rank 0, for
  /// warnings about the set-up of the GPUs. `doing`: the activity of the ranks, for messages. Uses the environment and
  /// the end of a job of the surroundings.
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
  /// Calls body(communicator, device) for every rank of this process and returns when all have ended. Throws the first
  /// error of any rank. When a rank has failed and another does not end in time, ends the other processes, and the
  /// surroundings end this one; if they cannot, waits for that rank.
  ///
  /// May be called again: each rank keeps its communicator and its thread (the caller's, if this process has one rank).
  /// Once a rank has failed, later calls throw that error without calling body.
  void run(const Body& body);
  /// Like run(), but calls body even after a rank has failed: for destroying the ranks' objects. Ignores its errors.
  void clean_up(const Body& body) noexcept;
  /// Called by a rank in run(): runs body() in the thread that called run(), and waits for it. An exception of body()
  /// is a bug.
  void in_callers_thread(const std::function<void()>& body);

 private:
  /// The communicator of a rank of this process, created at its first run.
  Communicator& communicator(int rank, Device);
  std::unique_ptr<Communicator> make_communicator(int rank, Device);
  /// After an error, while a rank still runs.
  void end_with(const Error&);
  void run_rank(int local_rank, const Body& body);
  /// Errors: Error(device) when the system refuses a thread; it counts as a failure of that rank.
  void start_threads();
  void work(int local_rank);
  /// Calls body(local rank) in the thread of each rank. Returns when all have ended. `ends`: whether ranks must end
  /// soon after a failure.
  void in_threads(const std::function<void(int)>& body, bool ends);

  std::vector<Device> devices_;
  Processes* others_;
  Log log_;
  std::string doing_;
  Surroundings around_;
  RankGroup group_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  // by local rank

  // The threads of several ranks.
  std::mutex mutex_;
  std::condition_variable change_;
  std::vector<std::thread> threads_;
  const std::function<void(int)>* work_ = nullptr;  // null: they end
  uint64_t round_ = 0;                              // of work
  int ended_ = 0;                                   // threads that have finished the current round
  const std::function<void()>* for_caller_ = nullptr;
};

/// After a fatal error of this process: ends all others with its exit code. The surroundings report the error
/// and end this process; if they cannot, returns.
void end_job(Processes& others, const Error&, const Surroundings&);

}  // namespace hctr
