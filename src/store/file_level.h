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

/// A folder with a RowFile for each namespace and "catalog.json", which says which commit is the last, the rows that
/// each file has in it with the number of the file's last commit, and the note of the owner. Replacing that file is the
/// commit, of all tables at once: a process killed at any point leaves what the last commit has made, whole. One
/// process at a time has the folder.
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
  bool holds() const override { return true; }
  void hold(const std::string& space) override { set_held(space, true); }
  void release(const std::string& space) override { set_held(space, false); }
  std::string note() const override { return note_; }
  void commit(const std::string& note) override;
  void roll_back() override;

  int64_t verify() override;
  /// Writes files that have free records anew.
  int64_t compact() override;

 private:
  struct Member {
    std::string file;
    std::shared_ptr<RowFile> rows;
    bool held = false;
  };
  void set_held(const std::string& space, bool held);
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
