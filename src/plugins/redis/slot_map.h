// Which node of a Redis cluster has which keys.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plugins/redis/connection.h"

namespace hctr {

inline constexpr int kRedisSlots = 16384;

/// The hash slot of a key: of what stands between its first '{' and the next '}', where there is something.
int redis_slot(std::string_view key);

/// Nodes by slot; a server that is no cluster has all of them.
struct SlotMap {
  std::vector<RedisAddress> masters{};
  std::vector<std::vector<RedisAddress>> replicas{};  ///< of each master
  std::vector<int16_t> master_of{};                   ///< [kRedisSlots], -1: none

  const RedisAddress* master(int slot) const {
    const int16_t at = master_of.empty() ? int16_t{-1} : master_of[static_cast<size_t>(slot)];
    return at < 0 ? nullptr : &masters[static_cast<size_t>(at)];
  }
  /// A node has said that the slot is there.
  void move(int slot, const RedisAddress& to);
  static SlotMap alone(const RedisAddress&);
  /// Of the reply to CLUSTER SLOTS. `asked`: whom, which a node without a name of its own means.
  static SlotMap of_reply(const RedisReply&, const RedisAddress& asked);
};

/// "host:port", also "[::1]:port". Throws std::runtime_error.
RedisAddress redis_address(std::string_view text);

}  // namespace hctr
