// A store level in memory that the processes of a host share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/level.h"
#include "store/shared_row_table.h"
#include "store/shared_segment.h"

namespace hctr {

/// The first process loads and updates the tables. The other processes read its commits: refresh() changes to the last
/// commit, and tables of earlier commits remain readable. When the updating process has ended, refresh() of another
/// process takes over its role.
class SharedLevel : public StoreLevel {
 public:
  /// Errors: those of SharedSegment::open().
  explicit SharedLevel(const std::string& name);
  ~SharedLevel() override;

  std::string name() const override { return "shared_memory"; }
  std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) override;
  /// The namespaces that have a table.
  std::vector<std::string> namespaces() const;
  void drop(const std::string& space) override;
  bool changes_at_commit() const override { return true; }
  bool tables_are_snapshots() const override { return true; }
  bool writable() const override { return segment_->writes(); }
  std::string why_read_only() const override;
  bool loading() const override { return segment_->loading(); }
  void loaded() override;
  std::string note() const override;
  void commit(const std::string& note) override;
  void roll_back() override;
  bool refresh() override;

 private:
  bool read_commit();
  void take_over();

  std::shared_ptr<SharedSegment> segment_;
  mutable std::mutex mutex_;
  std::shared_ptr<const SharedSegment::Pin> pin_;  // of the commit in `tables_`
  SharedSegment::Range root_{};
  std::string note_;
  std::map<std::string, std::shared_ptr<SharedRowTable>> tables_;
  std::vector<std::shared_ptr<SharedRowTable>> dropped_;  // since the last commit
};

}  // namespace hctr
