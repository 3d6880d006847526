// Maps keys to nodes of a Redis cluster.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plugins/redis/connection.h"

namespace hctr {

inline constexpr int kRedisSlots = 16384;

/// The hash slot of a key. If the key has text between its first '{' and the next '}', only this text is hashed.
int redis_slot(std::string_view key);

/// The nodes of each slot. A server without cluster mode has all slots.
struct SlotMap {
  std::vector<RedisAddress> masters{};
  std::vector<std::vector<RedisAddress>> replicas{};  ///< [master] the master's replicas
  std::vector<int16_t> master_of{};                   ///< [kRedisSlots]: index of the slot's master; -1: none

  const RedisAddress* master(int slot) const {
    const int16_t at = master_of.empty() ? int16_t{-1} : master_of[static_cast<size_t>(slot)];
    return at < 0 ? nullptr : &masters[static_cast<size_t>(at)];
  }
  /// Assigns a slot to another master, after a MOVED reply.
  void move(int slot, const RedisAddress& to);
  static SlotMap alone(const RedisAddress&);
  /// Parses the reply to CLUSTER SLOTS. `asked`: the address of the replying node, which replaces a missing host.
  static SlotMap of_reply(const RedisReply&, const RedisAddress& asked);
};

/// "host:port", also "[::1]:port". Throws std::runtime_error.
RedisAddress redis_address(std::string_view text);

}  // namespace hctr
