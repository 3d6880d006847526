// The files of a growing set, as the reader discovers them while it runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "formats/io/arriving_files.h"

namespace hctr {

/// Names of files in reading order. Readers wait for the next one; training adds names, on every rank the same in the
/// same order. Any thread may call any member.
class FileFeed {
 public:
  /// `known`: the first files, of a resumed run.
  explicit FileFeed(std::vector<std::string> known) : names_(std::move(known)) {}

  void add(const NewFiles&);
  std::vector<std::string> names() const;
  size_t size() const;
  bool ended() const;
  /// Whether a reader waits for a name now.
  bool waited_for() const { return waiting_ > 0; }
  /// Waits until there is file `index` and returns its name; nothing if the set has ended before, or if `closed` is set
  /// and wake() is called.
  std::optional<std::string> wait(size_t index, const std::atomic<bool>& closed);
  std::string name(size_t index) const;
  void wake();

 private:
  mutable std::mutex mutex_;
  std::condition_variable change_;
  std::vector<std::string> names_;
  bool ended_ = false;
  std::atomic<int> waiting_ = 0;
};

}  // namespace hctr
