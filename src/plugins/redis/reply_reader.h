// Replies of a Redis server, read by hiredis' protocol reader.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <vector>

#include "store/redis_plugin.h"

namespace hctr {

/// A reply as a whole, for commands of the client itself.
struct RedisReply {
  std::string text{};
  int64_t integer = 0;
  std::vector<RedisReply> elements{};
};

/// What the next reply goes to: a sink, or where there is none, a RedisReply.
struct ReplyTarget {
  const RedisSink* sink = nullptr;
  RedisReply* reply = nullptr;
  std::string error{};  ///< of a reply that is one
  bool complete = false;
};

class ReplyReader {
 public:
  ReplyReader();
  void feed(const char* bytes, size_t count);
  /// Whether the reply to `target` is complete; call again with the same target when more has arrived. Throws
  /// std::runtime_error where the bytes are no replies.
  bool next(ReplyTarget& target);

 private:
  struct Free {
    void operator()(redisReader* reader) const { redisReaderFree(reader); }
  };
  std::unique_ptr<redisReader, Free> reader_;
};

}  // namespace hctr
