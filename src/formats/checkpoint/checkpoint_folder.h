// Manages the folder with the checkpoints of a run. Each checkpoint is a subfolder: iteration_000200, iteration_000400,
// ...
//
// A checkpoint is written to iteration_<n>.part and renamed after all files are complete. If no other process has the
// lock, a folder that ends in .part is the leftover of a dead run.
#pragma once

#include <optional>
#include <vector>

#include "core/base/files.h"

namespace hctr {

/// Name of the lock file in a checkpoint folder. The run that uses the folder holds the lock.
inline constexpr const char* kLockName = "lock";

struct CheckpointPlace {
  int64_t iteration = 0;
  fs::path path;
};

/// Path of the checkpoint of an iteration.
fs::path checkpoint_path(const fs::path& folder, int64_t iteration);
/// The iteration in the name of a checkpoint folder; empty if the name has another form.
std::optional<int64_t> iteration_of(const fs::path& checkpoint);
/// Path of a checkpoint while it is being written or deleted.
fs::path part_path(const fs::path& folder, int64_t iteration);
/// All checkpoint folders by ascending iteration, including incomplete ones. Empty if `folder` does not exist. Errors:
/// Error(io).
std::vector<CheckpointPlace> list_checkpoints(const fs::path& folder);

/// Removes leftovers of dead runs. The caller must hold the lock. Errors: Error(io).
void remove_parts(const fs::path& folder);
/// Removes a checkpoint atomically, so that a partly deleted checkpoint never has the final name. Errors: Error(io).
void remove_checkpoint(const fs::path& folder, int64_t iteration);
/// Renames the folder of a complete checkpoint to its final name and flushes the directory entry. Errors: Error(io).
void publish_checkpoint(const fs::path& folder, int64_t iteration);
/// Renames each checkpoint newer than `iteration` to <name>.left. A run that resumes from `iteration` needs this,
/// because its own checkpoints do not build on the newer ones. Returns the new paths. Errors: Error(io).
std::vector<fs::path> leave_newer_checkpoints(const fs::path& folder, int64_t iteration);

/// Flushes a file, or the directory entries of a folder, to disk. Errors: Error(io).
void sync_to_disk(const fs::path&);

/// Holds the lock of a folder until destruction. The lock is also released when the process exits or crashes.
class FolderLock {
 public:
  /// Acquires the lock; creates a missing folder. Errors: Error(io), also if another process has the lock.
  explicit FolderLock(const fs::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace hctr
