// The ranks of one process. Each knows the keys of its own samples, and owns rows that other ranks need.
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

/// Passes the keys that one rank knows to all ranks of its process; each looks up the rows that it owns. Any thread may
/// call its members.
class LookAheadGroup {
 public:
  /// Receives the keys of a batch in one of its sparse inputs, with their slots. Several threads call it, but never
  /// concurrently.
  using Ask = std::function<void(size_t sparse_input, std::span<const ops::RowOwner>)>;
  struct Member;

  /// From now on `ask` receives the keys of every member.
  std::shared_ptr<Member> join(Ask ask);
  /// Waits for a call in progress; afterwards this member's `ask` is not called any more.
  void leave(Member&);
  /// Passes keys to all members, this one first. Skips a member that has no memory for them.
  void ask(const Member& from, size_t sparse_input, std::span<const ops::RowOwner> keys);

 private:
  std::mutex mutex_;  // of members_
  std::vector<std::shared_ptr<Member>> members_;
};

}  // namespace hctr
