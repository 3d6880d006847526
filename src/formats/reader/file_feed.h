// The file names of a growing set, which are discovered while the set is read.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "formats/io/arriving_files.h"

namespace hctr {

/// A list of file names in reading order. Readers wait for names; training adds names, in the same order on every rank.
/// Thread-safe.
class FileFeed {
 public:
  /// `known`: names from the saved state of a resumed run.
  explicit FileFeed(std::vector<std::string> known) : names_(std::move(known)) {}

  void add(const NewFiles&);
  std::vector<std::string> names() const;
  size_t size() const;
  bool ended() const;
  /// Whether a reader is waiting for a name.
  bool waited_for() const { return waiting_ > 0; }
  /// Blocks until file `index` is known and returns its name. Returns nothing if the set ends without this file, or if
  /// `closed` is set and wake() is called.
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
