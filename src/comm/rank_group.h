// The ranks of one process, which are its threads, and where they meet; other processes of the job join in when all are
// there.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "comm/processes.h"

namespace hctr {

class RankGroup {
 public:
  /// `ranks` of this process. `others` (may be none) outlives the group; `limit`: of waiting in steps, 0 is none.
  RankGroup(int ranks, Processes* others, std::chrono::seconds limit);

  const Seats& seats() const { return seats_; }
  std::chrono::seconds limit() const { return limit_; }

  /// Called by every rank of the job: what `rank` sends to r arrives as what r receives from `rank`. Sizes agree.
  /// Errors: Error(comm) with the reason when a rank has failed, or does not come in time; the call's `name` stands in
  /// it.
  void exchange(int rank, const Transfer&, Wait, const char* name);
  /// Every rank here throws this from now on. The first reason counts.
  void fail(int rank, const Error&) noexcept;
  /// The first reason, and the rank it comes from.
  struct Failure {
    int rank;
    Error error;
  };
  std::optional<Failure> failure() const;

 private:
  void meet(int rank, Wait, const char* name, const std::function<void()>& between);
  void throw_failure(int rank) const;
  std::string absent() const;

  Processes* others_;
  std::chrono::seconds limit_;
  Seats seats_;
  mutable std::mutex mutex_;
  std::condition_variable change_;
  uint64_t meetings_ = 0;
  int arrived_ = 0;
  std::vector<char> here_;                  // of this meeting, by local rank
  std::vector<const Transfer*> transfers_;  // by local rank
  std::optional<Failure> failure_;
};

}  // namespace hctr
