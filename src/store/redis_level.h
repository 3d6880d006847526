// A store level in a Redis server or cluster.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/redis_table.h"

namespace hctr {

/// Connects at the first use, so a store with a level below opens and answers without Redis. With StoreNames::own, the
/// rows belong to this process and are removed when the process ends.
class RedisLevel : public StoreLevel {
 public:
  /// `lowest`: whether there is no level below. Errors: Error(config); Error(io) if the plug-in or a certificate is
  /// missing.
  RedisLevel(const StoreRedisOptions&, bool lowest);

  std::string name() const override { return "redis"; }
  std::shared_ptr<LevelTable> table(const std::string& space, int64_t dim, int64_t expected) override;
  std::shared_ptr<LevelTable> adopt(const std::string& space, int64_t dim) override;
  void drop(const std::string& space) override;
  void commit(const std::string& note) override;
  void roll_back() override;

 private:
  struct Member {
    std::string name;
    bool adopted = false;
    std::shared_ptr<RedisTable> rows{};
  };
  std::shared_ptr<RedisTable> add(const std::string& space, int64_t dim, int64_t expected, bool adopted);

  RedisShared shared_;
  std::mutex mutex_;
  std::map<std::string, Member> members_;
};

}  // namespace hctr
