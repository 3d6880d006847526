// A store level in files of a folder.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/file_lock.h"
#include "store/row_file.h"

namespace hctr {

/// A folder with a RowFile per namespace and "catalog.json". The catalog has the number of the last commit and the
/// owner's note. For each file, the catalog also has the number of rows and the file's own last commit. Replacing the
/// catalog commits the changes of all tables together, so a killed process leaves exactly the state of the last commit.
/// Only one process at a time can open the folder.
class FileLevel : public StoreLevel {
 public:
  /// Opens or creates the folder. Reads each file once, sequentially. Errors: Error(io), also if another process uses
  /// the folder; Error(data) with the name of a damaged file.
  explicit FileLevel(const fs::path& folder);

  std::string name() const override { return "file"; }
  std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) override;
  /// The namespaces that have a table.
  std::vector<std::string> namespaces() const;
  void drop(const std::string& space) override;
  bool changes_at_commit() const override { return true; }
  bool holds() const override { return true; }
  void hold(const std::string& space) override { set_held(space, true); }
  void release(const std::string& space) override { set_held(space, false); }
  std::string note() const override { return note_; }
  void commit(const std::string& note) override;
  void roll_back() override;

  int64_t verify() override;
  /// Rewrites files that have free records.
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
  std::vector<fs::path> dropped_;  // the next catalog does not name these files; they are removed after it is written
};

}  // namespace hctr
