// The folder that holds the checkpoints of a run, one folder each: iteration_000200, iteration_000400, ...
//
// A checkpoint is written as iteration_<n>.part and renamed when it is complete. Folders that end in .part belong to a
// dead run, unless another process has the lock.
#pragma once

#include <optional>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// The lock file in the folder of the run that uses it.
inline constexpr const char* kLockName = "lock";

struct CheckpointPlace {
  int64_t iteration = 0;
  fs::path path;
};

/// The folder of the checkpoint of an iteration.
fs::path checkpoint_path(const fs::path& folder, int64_t iteration);
/// The iteration of a checkpoint by the name of its folder; none for any other name.
std::optional<int64_t> iteration_of(const fs::path& checkpoint);
/// While it is written, or deleted.
fs::path part_path(const fs::path& folder, int64_t iteration);
/// All folders named like checkpoints, by iteration, complete or not. None if there is no folder. Errors: Error(io).
std::vector<CheckpointPlace> list_checkpoints(const fs::path& folder);

/// Removes leftovers of dead runs. Needs the lock. Errors: Error(io).
void remove_parts(const fs::path& folder);
/// Removes a checkpoint atomically: its name never shows a partial one. Errors: Error(io).
void remove_checkpoint(const fs::path& folder, int64_t iteration);
/// Renames the folder of a complete checkpoint, and flushes the name. Errors: Error(io).
void publish_checkpoint(const fs::path& folder, int64_t iteration);
/// Renames checkpoints newer than `iteration` to <name>.left: the run resumes from an older one, and they no longer
/// belong to it. Returns them. Errors: Error(io).
std::vector<fs::path> leave_newer_checkpoints(const fs::path& folder, int64_t iteration);

/// Flushes a file, or the names in a folder, to the disk. Errors: Error(io).
void sync_to_disk(const fs::path&);

/// Holds the lock of a folder until it is destroyed or the process ends in any way.
class FolderLock {
 public:
  /// Creates the folder if it is missing. Errors: Error(io), also when another process has the lock.
  explicit FolderLock(const fs::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace hctr
