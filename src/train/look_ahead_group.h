// The ranks of one process, each of which knows the keys of its own samples and has rows that others need.
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

/// Passes the keys that any rank knows to all ranks of its process, of which each looks for the rows that it owns. Any
/// thread may call its members.
class LookAheadGroup {
 public:
  /// The keys of a batch in one of its sparse inputs, with their slots. May be called by several threads, but not at a
  /// time.
  using Ask = std::function<void(size_t sparse_input, std::span<const ops::RowOwner>)>;
  struct Member;

  /// From now on `ask` gets the keys of every member.
  std::shared_ptr<Member> join(Ask ask);
  /// `ask` of this member is not called any more once this returns, which waits for a call under way.
  void leave(Member&);
  /// Passes keys to all members, this one first. One that has no memory for them goes without; the others get them.
  void ask(const Member& from, size_t sparse_input, std::span<const ops::RowOwner> keys);

 private:
  std::mutex mutex_;  // of members_
  std::vector<std::shared_ptr<Member>> members_;
};

}  // namespace hctr
