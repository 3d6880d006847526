// A lock of a place on the disk, which ends with its process.
#pragma once

#include <string>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Holds a lock of the place that `prefix` names until it is destroyed or the process ends, however it ends: a folder
/// "out/", or the start of names "out/m". The lock is a file, "out/.lock" or "out/.m.lock", that is removed at the end;
/// one that a killed process has left locks nothing. Where no file can be made, or the file system has no locks,
/// nothing is locked: whoever writes there says why.
class FileLock {
 public:
  /// `what`: for the message, "\"snapshot_prefix\"". Errors: Error(io) naming the process that has the lock.
  FileLock(const fs::path& prefix, const std::string& what);
  ~FileLock();
  FileLock(FileLock&&) noexcept;
  FileLock& operator=(FileLock&&) = delete;

  /// Folders that it made stay at the end, also where nothing is in them.
  void keep_folders() { folders_.clear(); }
  static fs::path path_for(const fs::path& prefix);

 private:
  /// Whether the file that was opened still has its name.
  bool has_name() const;

  fs::path path_;
  std::vector<fs::path> folders_{};  // that it made, the outermost first
  int descriptor_ = -1;              // -1: nothing is locked
};

}  // namespace hctr
