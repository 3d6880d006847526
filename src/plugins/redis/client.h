// A client of a Redis server or cluster.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "plugins/redis/slot_map.h"

namespace hctr {

/// Connections to all nodes. One call of run() at a time uses a lane.
struct RedisLane {
  using Connections = std::map<RedisAddress, std::unique_ptr<RedisConnection>>;
  Connections masters{}, replicas{};
};

class RedisClientOf : public RedisClient {
 public:
  static const char* open(const RedisSettings&, RedisClient** client);

  const char* run(RedisCommand* commands, int64_t count, bool waits) override;
  RedisCounts counts() const override;

  // The following members are for RedisRun. Thread-safe.
  bool reads_replicas() const { return settings_.read_replicas; }
  void count_redirection() { ++redirected_; }
  void count_broken_connection() { ++broken_; }
  std::unique_ptr<RedisLane> take_lane(RedisClock::time_point deadline);
  void give_lane(std::unique_ptr<RedisLane>);
  std::unique_ptr<RedisConnection> connect(const RedisAddress&, bool replica, RedisClock::time_point deadline);
  SlotMap map() const;
  void moved(int slot, const RedisAddress&);
  /// Updates the slot map from any node that answers. Does nothing if it was updated less than kBetweenRefreshes ago.
  /// Throws if no node answers.
  void refresh(RedisClock::time_point deadline);
  /// Whether the node failed recently. Such a node is not contacted for a while.
  bool is_down(const RedisAddress& address) const { return !why_down(address).empty(); }
  std::string why_down(const RedisAddress&) const;  // empty: the node is not down
  void set_down(const RedisAddress&, const std::string& why);
  void set_up(const RedisAddress&);

 private:
  explicit RedisClientOf(const RedisSettings&);

  std::string texts_[7];  // texts that settings_ points to
  RedisSettings settings_;
  std::unique_ptr<SSL_CTX, FreeSsl> tls_{};
  std::vector<RedisAddress> first_{};  // addresses given in the settings

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable lane_is_free_;
  std::vector<std::unique_ptr<RedisLane>> lanes_{};
  int lanes_made_ = 0;
  SlotMap map_{};
  struct Down {
    RedisClock::time_point until{};
    int times = 0;
    std::string why{};
  };
  std::map<RedisAddress, Down> down_{};
  std::atomic<bool> any_down_ = false;
  RedisClock::time_point refreshed_{};
  std::atomic<int64_t> connected_{0}, redirected_{0}, refreshes_{0}, broken_{0};
};

}  // namespace hctr
