// A lock on an output path, released when its process ends.
#pragma once

#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Locks the path that `prefix` names: a folder "out/", or the start of file names "out/m". The lock ends when the
/// object is destroyed or the process ends. The lock is an flock() on the file "out/.lock" or "out/.m.lock", and the
/// destructor removes that file. A lock file of a killed process locks nothing. If the lock file cannot be created, or
/// the file system has no locks, nothing is locked; a later write to the path reports the reason.
class FileLock {
 public:
  /// `what`: the description in the message, such as "\"snapshot_prefix\"". Errors: Error(io) naming the process that
  /// holds the lock.
  FileLock(const fs::path& prefix, const std::string& what);
  ~FileLock();
  FileLock(FileLock&&) noexcept;
  FileLock& operator=(FileLock&&) = delete;

  /// Tells the destructor not to remove the empty folders that the constructor created.
  void keep_folders() { folders_.clear(); }
  static fs::path path_for(const fs::path& prefix);

 private:
  /// Whether `path_` still names the opened file.
  bool has_name() const;

  fs::path path_;
  std::vector<fs::path> folders_{};  // created folders, outermost first
  int descriptor_ = -1;              // -1: nothing is locked
};

}  // namespace hctr
