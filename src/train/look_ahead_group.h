// Look-ahead across the ranks of one process. Each rank knows the keys of its own samples, and owns rows that other
// ranks need.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ops/embedding/direct_index.h"

namespace hctr {

/// Passes the keys that one rank knows to all ranks of the process. Each rank then looks up the rows that it owns. All
/// members are thread-safe.
class LookAheadGroup {
 public:
  /// Receives the keys of a batch in one sparse input, with their slots. Called from several threads, never
  /// concurrently.
  using Ask = std::function<void(size_t sparse_input, std::span<const ops::RowOwner>)>;
  struct Member;

  /// After this call, `ask` receives the keys of every member.
  std::shared_ptr<Member> join(Ask ask);
  /// Waits for a call in progress. After leave() returns, this member's `ask` is not called any more.
  void leave(Member&);
  /// Passes keys to all members, beginning with `from`. Skips a member whose `ask` runs out of memory.
  void ask(const Member& from, size_t sparse_input, std::span<const ops::RowOwner> keys);

 private:
  std::mutex mutex_;  // protects members_
  std::vector<std::shared_ptr<Member>> members_;
};

}  // namespace hctr
