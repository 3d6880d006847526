#include "train/look_ahead_group.h"

#include <algorithm>
#include <new>
#include <utility>

namespace hctr {

struct LookAheadGroup::Member {
  std::mutex mutex;
  Ask ask;                         // empty after leave()
  std::atomic<bool> left = false;  // set before leave() takes the lock, so that ask() does not start further calls
};

std::shared_ptr<LookAheadGroup::Member> LookAheadGroup::join(Ask ask) {
  auto member = std::make_shared<Member>();
  member->ask = std::move(ask);
  const std::lock_guard lock(mutex_);
  members_.push_back(member);
  return member;
}

void LookAheadGroup::leave(Member& member) {
  member.left = true;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(members_, [&](const auto& other) { return other.get() == &member; });
  }
  const std::lock_guard lock(member.mutex);
  member.ask = {};
}

void LookAheadGroup::ask(const Member& from, size_t sparse_input, std::span<const ops::RowOwner> keys) {
  std::vector<std::shared_ptr<Member>> members;
  {
    const std::lock_guard lock(mutex_);
    members = members_;
  }
  // Each rank begins with itself and continues with the next ranks, to avoid lock contention on one rank.
  const auto own =
      std::find_if(members.begin(), members.end(), [&](const auto& other) { return other.get() == &from; });
  std::rotate(members.begin(), own == members.end() ? members.begin() : own, members.end());
  for (const auto& member : members) try {
      if (member->left) continue;
      const std::lock_guard lock(member->mutex);
      if (member->ask) member->ask(sparse_input, keys);
      // memory is short, so this member skips the keys, and its step waits for the disk
    } catch (const std::bad_alloc&) {
    }
}

}  // namespace hctr
