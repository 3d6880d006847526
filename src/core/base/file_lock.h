// A lock of a place on the disk, which ends with its process.
#pragma once

#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Locks the place that `prefix` names (a folder "out/", or the start of names "out/m") until the object is destroyed
/// or the process ends in any way. The lock is a file, "out/.lock" or "out/.m.lock", that is removed at the end; a file
/// left by a killed process locks nothing. If the file cannot be created, or the file system has no locks, nothing is
/// locked: the writer of that place reports why.
class FileLock {
 public:
  /// `what`: for the message, "\"snapshot_prefix\"". Errors: Error(io) naming the process that has the lock.
  FileLock(const fs::path& prefix, const std::string& what);
  ~FileLock();
  FileLock(FileLock&&) noexcept;
  FileLock& operator=(FileLock&&) = delete;

  /// Keeps created folders at the end, even if they are empty.
  void keep_folders() { folders_.clear(); }
  static fs::path path_for(const fs::path& prefix);

 private:
  /// Whether the opened file still has its name.
  bool has_name() const;

  fs::path path_;
  std::vector<fs::path> folders_{};  // created folders, the outermost first
  int descriptor_ = -1;              // -1: nothing is locked
};

}  // namespace hctr
