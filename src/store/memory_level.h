// A store level in the memory of this process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "store/level.h"

namespace hctr {

/// Tables are ConcurrentRows. With `most_rows`, each table is a cache of the levels below: a full table replaces a row
/// for each new one.
class MemoryLevel : public StoreLevel {
 public:
  explicit MemoryLevel(int64_t most_rows = 0) : most_rows_(most_rows) {}
  std::string name() const override { return "memory"; }
  std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) override;
  void drop(const std::string& space) override;

 private:
  int64_t most_rows_;  // 0: all
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<LevelTable>> tables_;
};

}  // namespace hctr
