// The level in files of a folder.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/file_lock.h"
#include "store/row_file.h"

namespace hctr {

/// A folder with a RowFile for each namespace and "catalog.json", which has the number of the last commit, the rows of
/// each file, and the note of the owner. Replacing the catalog commits all tables at once: a process killed at any
/// point leaves the state of the last commit. Only one process at a time uses the folder.
class FileLevel : public StoreLevel {
 public:
  /// Opens or creates the folder. Reads each file once, sequentially. Errors: Error(io), also if another process uses
  /// it; Error(data) naming the damaged file.
  explicit FileLevel(const fs::path& folder);

  std::string name() const override { return "file"; }
  std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) override;
  std::vector<std::string> namespaces() const override;
  void drop(const std::string& space) override;
  bool persistent() const override { return true; }
  std::string note() const override { return note_; }
  void commit(const std::string& note) override;
  void roll_back() override;

  /// Compares every row with its checksum. Returns the number of rows. Errors: Error(data) naming the first damaged
  /// one.
  int64_t verify();
  /// Rewrites files without their free records. Returns the bytes freed. No other call may run concurrently.
  int64_t compact();

 private:
  struct Member {
    std::string file;
    std::shared_ptr<RowFile> rows;
  };
  std::string next_file();
  void write_catalog(const std::map<std::string, Member>&, uint64_t commit, const std::string& note) const;

  fs::path folder_;
  FileLock lock_;
  uint64_t committed_ = 0;
  int64_t files_ = 0;  // number of files created so far, for their names
  std::string note_;
  mutable std::mutex mutex_;
  std::map<std::string, Member> members_;
  std::vector<fs::path> dropped_;  // files to remove once the catalog no longer names them
};

}  // namespace hctr
