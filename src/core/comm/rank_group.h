// A process's ranks, which are threads, and the barrier at which these ranks exchange data. The last rank to arrive
// exchanges data with the other processes of the job.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/base/expect.h"
#include "core/comm/processes.h"

namespace hctr {

class RankGroup {
 public:
  /// `ranks`: number of ranks in this process. `others`: the other processes, or null; must outlive the group. `limit`:
  /// time limit of waits within a step; 0: no limit. `environment`: for NCCL_HOSTID and for GPU communicators.
  RankGroup(int ranks, Processes* others, std::chrono::seconds limit, Environment environment = {});

  const LocalRanks& local_ranks() const { return local_ranks_; }
  /// See Communicator::host_of(). Two processes are on the same host if their host_id() is equal.
  int host_of(int rank) const { return hosts_.at(static_cast<size_t>(rank)); }
  std::chrono::seconds limit() const { return limit_; }
  /// Name of the option that sets the limit, for messages.
  const std::string& limit_setting() const { return limit_setting_; }
  void set_limit_setting(std::string setting) { limit_setting_ = std::move(setting); }
  const Environment& environment() const { return environment_; }
  /// Held by a rank of this process while it destroys its GPU communicators.
  std::mutex& destroying() { return destroying_; }

  /// Called by every rank of the job. Copies transfer.send[r] of `rank` to transfer.receive[rank] of rank r, for every
  /// r. The two byte ranges of a copy must have equal size. `name`: the call's name in messages. Errors: Error(comm)
  /// with the reason if a rank has failed or does not arrive in time.
  void exchange(int rank, const Transfer&, Wait, const char* name);
  /// Makes every rank of this process throw this error from its current or next call. Only the first failing rank
  /// counts. That rank may call fail() again with a more detailed error.
  void fail(int rank, const Error&) noexcept;
  /// Marks the rank as leaving by stack unwinding; other ranks stop waiting for it. The rank will call fail() later
  /// with the reason.
  void leave(int rank) noexcept;
  /// The first error and the rank that reported the error.
  struct Failure {
    int rank;
    Error error;
    bool reason_follows = false;  ///< leave() was called, but not yet fail()
  };
  std::optional<Failure> failure() const;

 private:
  /// Barrier for the ranks of this process. The last rank to arrive calls `last`.
  void meet(int rank, Wait, const char* name, const std::function<void()>& last);
  /// Copies the data that the ranks of this process send to `rank`.
  void copy_to(int rank, const Transfer&, const char* name) const;
  /// Called after copy_to(). Waits until all ranks of this process have called leave_copying(). Failing ranks call
  /// leave_copying() too, so no memory is freed while another rank reads that memory.
  void leave_copying();
  /// Yields until over() returns true, for at most kBarrierYielding. Ranks usually arrive within that time, which is
  /// shorter than the time a thread takes to sleep and wake up.
  template <class Over>
  void yield_for(const Over& over);
  void throw_failure(int rank) const;
  std::vector<int> find_hosts();
  /// Names the ranks that have not arrived at the barrier: "rank 2 has" or "ranks 0, 3 have".
  std::string missing_ranks() const;

  Processes* others_;
  std::chrono::seconds limit_;
  std::string limit_setting_ = "--comm-timeout";
  Environment environment_;
  LocalRanks local_ranks_;
  std::vector<int> hosts_;  // [rank of the job]: index of its host
  std::mutex destroying_;
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::atomic<uint64_t> meetings_ = 0;  // completed barriers
  // In barriers below this number, waiting ranks sleep instead of yielding, because other threads compete for cores.
  std::atomic<uint64_t> sleeping_until_ = 0;
  int arrived_ = 0;
  std::atomic<bool> exchanging_ = false;    // all ranks have arrived; the last rank exchanges with other processes
  int copying_ = 0;                         // ranks that have not called leave_copying() yet
  std::atomic<uint64_t> copied_ = 0;        // number of exchanges whose data all local ranks have copied
  std::vector<char> here_;                  // [local rank]: 1 if the rank has arrived at the current barrier
  std::vector<const Transfer*> transfers_;  // [local rank]
  std::optional<Failure> failure_;
  std::atomic<bool> failed_ = false;  // whether failure_ is set
};

}  // namespace hctr
