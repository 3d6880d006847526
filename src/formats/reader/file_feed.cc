#include "formats/reader/file_feed.h"

namespace hctr {

void FileFeed::add(const NewFiles& files) {
  {
    const std::lock_guard lock(mutex_);
    names_.insert(names_.end(), files.names.begin(), files.names.end());
    ended_ = ended_ || files.end;
  }
  change_.notify_all();
}

std::vector<std::string> FileFeed::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

size_t FileFeed::size() const {
  const std::lock_guard lock(mutex_);
  return names_.size();
}

bool FileFeed::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

std::string FileFeed::name(size_t index) const {
  const std::lock_guard lock(mutex_);
  return names_.at(index);
}

std::optional<std::string> FileFeed::wait(size_t index, const std::atomic<bool>& closed) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  change_.wait(lock, [&] { return closed || ended_ || index < names_.size(); });
  --waiting_;
  if (closed || index >= names_.size()) return std::nullopt;
  return names_[index];
}

void FileFeed::wake() {
  // Because of the lock, a waiting reader either has not checked its condition yet, or already sleeps and is woken.
  const std::lock_guard lock(mutex_);
  change_.notify_all();
}

}  // namespace hctr
