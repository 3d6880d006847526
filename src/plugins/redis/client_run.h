// One call of run(): commands to their nodes, again where slots have moved or nodes are gone.
#pragma once

#include <deque>

#include "plugins/redis/client.h"

namespace hctr {

class RedisRun {
 public:
  RedisRun(RedisClientOf&, RedisCommand* commands, int64_t count, bool waits, RedisClock::time_point deadline);
  ~RedisRun();
  /// Returns why some are not done; empty: all are.
  std::string finish();

 private:
  struct Pending {
    RedisCommand* command;
    int slot;
    RedisAddress ask{};  // where a slot that moves has the key; port 0: at its master
    RedisAddress sent_to{};
    ReplyTarget target{};
  };
  /// What a round has found out.
  struct Round {
    bool waits = false, refreshes = false;
    std::map<RedisAddress, std::string> failed{};
  };
  void send(Round&);
  RedisConnection* connection_for(Pending&, const SlotMap&, Round&);
  RedisConnection* connected(RedisLane::Connections&, const RedisAddress&, bool replica, Round&);
  void receive(Round&);
  void drop(RedisConnection*, Round&, const std::string& why);
  /// Whether the command is to be sent again.
  bool goes_on(Pending&, Round&);
  /// Whether it can be done while nodes do not answer.
  bool is_hopeless(const Pending&, const Round&) const;

  RedisClientOf& client_;
  bool waits_;
  RedisClock::time_point deadline_;
  std::unique_ptr<RedisLane> lane_;
  std::deque<Pending> pending_{};
  std::deque<ReplyTarget> asking_{};  // replies that say nothing
  std::set<RedisConnection*> active_{};
  std::set<RedisAddress> down_before_{};
  std::string problem_{};
};

}  // namespace hctr
