// One call of run(): sends commands to their nodes, and resends them if slots have moved or nodes have failed.
#pragma once

#include <deque>

#include "plugins/redis/client.h"

namespace hctr {

class RedisRun {
 public:
  RedisRun(RedisClientOf&, RedisCommand* commands, int64_t count, bool waits, RedisClock::time_point deadline);
  ~RedisRun();
  /// Runs the commands. Returns the reason if some commands failed; empty: all succeeded.
  std::string finish();

 private:
  struct Pending {
    RedisCommand* command;
    int slot;
    RedisAddress ask{};  // for an ASK redirection: the node that has the key; port 0: the slot's master
    RedisAddress sent_to{};
    ReplyTarget target{};
  };
  /// The results of one round of sending and receiving.
  struct Round {
    bool waits = false, refreshes = false;
    std::map<RedisAddress, std::string> failed{};
  };
  void send(Round&);
  RedisConnection* connection_for(Pending&, const SlotMap&, Round&);
  RedisConnection* connected(RedisLane::Connections&, const RedisAddress&, bool replica, Round&);
  void receive(Round&);
  void drop(RedisConnection*, Round&, const std::string& why);
  /// Handles the reply. Returns whether the command must be sent again.
  bool goes_on(Pending&, Round&);
  /// Whether a command cannot succeed, because its node does not answer.
  bool is_hopeless(const Pending&, const Round&) const;

  RedisClientOf& client_;
  bool waits_;
  RedisClock::time_point deadline_;
  std::unique_ptr<RedisLane> lane_;
  std::deque<Pending> pending_{};
  std::deque<ReplyTarget> asking_{};  // replies to ASKING, which are ignored
  std::set<RedisConnection*> active_{};
  std::set<RedisAddress> down_before_{};
  std::string problem_{};
};

}  // namespace hctr
