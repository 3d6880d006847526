// The ranks of one process, which are its threads, and the barrier at which they exchange data. The last one to arrive
// exchanges with the other processes of the job.
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
  /// `ranks`: the number of ranks of this process. `others`: the other processes, or null; must outlive the group.
  /// `limit`: of a wait within a step; 0: none. `environment`: for NCCL_HOSTID, and for communicators of GPUs.
  RankGroup(int ranks, Processes* others, std::chrono::seconds limit, Environment environment = {});

  const LocalRanks& local_ranks() const { return local_ranks_; }
  /// See Communicator::host_of; uses the host_id() of its process.
  int host_of(int rank) const { return hosts_.at(static_cast<size_t>(rank)); }
  std::chrono::seconds limit() const { return limit_; }
  /// The option that raises the limit, for messages.
  const std::string& limit_setting() const { return limit_setting_; }
  void set_limit_setting(std::string setting) { limit_setting_ = std::move(setting); }
  const Environment& environment() const { return environment_; }

  /// Called by every rank of the job. Copies the piece that `rank` sends to r to the piece that r receives from `rank`;
  /// both have the same size. `name`: of the call, for messages. Errors: Error(comm) with the reason if a rank has
  /// failed or does not arrive in time.
  void exchange(int rank, const Transfer&, Wait, const char* name);
  /// From now on every rank of this process throws this error from its current or next call. Only the first failing
  /// rank counts; it may call again with a more detailed error.
  void fail(int rank, const Error&) noexcept;
  /// The rank ends by stack unwinding, and will call fail() with the reason: others do not wait for it.
  void leave(int rank) noexcept;
  /// The first error, and the rank that reported it.
  struct Failure {
    int rank;
    Error error;
    bool reason_follows = false;  ///< the rank has only left so far
  };
  std::optional<Failure> failure() const;

 private:
  /// A barrier of the ranks of this process. The last one to arrive calls `last`.
  void meet(int rank, Wait, const char* name, const std::function<void()>& last);
  /// Copies what the ranks of this process send to `rank`.
  void copy_to(int rank, const Transfer&, const char* name) const;
  /// After copy_to(): waits until all ranks of this process have copied, which they do even if one fails, so that no
  /// memory is freed while another rank reads it.
  void leave_copying();
  /// Yields until over() for as long as ranks usually need, which is less than a thread takes to sleep and wake.
  template <class Over>
  void yield_for(const Over& over);
  void throw_failure(int rank) const;
  std::vector<int> find_hosts();
  /// "rank 2 has" or "ranks 0, 3 have": the ranks that have not arrived.
  std::string missing_ranks() const;

  Processes* others_;
  std::chrono::seconds limit_;
  std::string limit_setting_ = "--comm-timeout";
  Environment environment_;
  LocalRanks local_ranks_;
  std::vector<int> hosts_;  // by rank of the job
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::atomic<uint64_t> meetings_ = 0;  // barriers that all ranks have left or may leave
  std::atomic<uint64_t> sleeping_until_ =
      0;  // until this barrier, waiting ranks sleep at once, because others compete for cores
  int arrived_ = 0;
  std::atomic<bool> exchanging_ = false;    // all have arrived, and the last one exchanges with the other processes
  int copying_ = 0;                         // ranks that have not called leave_copying() yet
  std::atomic<uint64_t> copied_ = 0;        // exchanges whose copies are complete
  std::vector<char> here_;                  // at the current barrier, by local rank
  std::vector<const Transfer*> transfers_;  // by local rank
  std::optional<Failure> failure_;
  std::atomic<bool> failed_ = false;  // whether failure_ is set
};

}  // namespace hctr
