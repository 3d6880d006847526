// Parses the replies of a Redis server, with hiredis' protocol reader.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include "store/redis_plugin.h"

namespace hctr {

/// A complete reply, for the client's own commands.
struct RedisReply {
  std::string text{};
  int64_t integer = 0;
  std::vector<RedisReply> elements{};
};

/// The target of the next reply: `sink`, or `reply` if `sink` is null.
struct ReplyTarget {
  const RedisSink* sink = nullptr;
  RedisReply* reply = nullptr;
  std::string error{};  ///< text of an error reply
  bool complete = false;
};

class ReplyReader {
 public:
  ReplyReader();
  void feed(const char* bytes, size_t count);
  /// Parses the next reply into `target`. Returns whether the reply is complete; if not, call again with the same
  /// target after feed(). Throws std::runtime_error for invalid bytes.
  bool next(ReplyTarget& target);

 private:
  struct Free {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace hctr
