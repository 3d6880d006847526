// A store level in a RocksDB database.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hctr/store.h"
#include "store/level.h"
#include "store/rocks_plugin.h"

namespace hctr {

/// One column family per namespace. Keys are the bytes of the key, values are the floats of the row, as in HugeCTR's
/// parameter server. The catalog of tables is in the default column family, under "huge_ctr/". A commit is one write to
/// the database's log and includes the owner's note, so a killed process leaves exactly the state of the last commit. A
/// new table is sorted and loaded as files, without the log.
class RocksLevel : public StoreLevel {
 public:
  /// Errors: Error(io), also if another process uses the database; Error(data) with the name of the damaged part.
  explicit RocksLevel(const StoreRocksOptions&);
  ~RocksLevel() override;

  std::string name() const override { return "rocksdb"; }
  std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) override;
  std::shared_ptr<LevelTable> adopt(const std::string& space, int64_t dim) override;
  /// The namespaces that have a table.
  std::vector<std::string> namespaces() const;
  void drop(const std::string& space) override;
  bool changes_at_commit() const override { return true; }
  bool holds() const override { return true; }
  void hold(const std::string& space) override { set_held(space, true); }
  void release(const std::string& space) override { set_held(space, false); }
  bool writable() const override { return options_.opening == StoreRocksOptions::Opening::update; }
  std::string note() const override;
  void commit(const std::string& note) override;
  void roll_back() override;
  bool refresh() override;
  int64_t verify() override;
  int64_t compact() override;

 private:
  struct Batch;
  struct Member {
    std::string column;
    bool adopted = false;
    bool held = false;  // whether commits exclude the table's changes
    std::shared_ptr<class RocksTable> rows{};
  };
  struct Dropped {
    std::string column;
    std::shared_ptr<RocksColumn> rows;
  };
  void open_database();
  void read_catalog();
  std::shared_ptr<RocksColumn> open_column(const std::string& name, bool create);
  void check(const char* problem) const;
  void set_held(const std::string& space, bool held);
  Member& add(const std::string& space, int64_t dim, bool adopted);

  StoreRocksOptions options_;
  std::shared_ptr<RocksDatabase> database_;
  int64_t opened_ = 0;
  mutable std::mutex mutex_;
  std::string note_;
  std::map<std::string, Member> members_;
  std::vector<Dropped> dropped_;
};

}  // namespace hctr
