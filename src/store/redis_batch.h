// Commands of Redis that are sent together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis_plugin.h"

namespace hctr {

/// Sinks for replies that nobody needs, for one number, and for a number of each command.
RedisSink no_reply();
RedisSink number_reply(int64_t* number);

class RedisBatch {
 public:
  /// Begins a command of `words` more words than its name and key.
  void begin(std::string_view name, const std::string& key, size_t words, bool reads, RedisSink sink = no_reply());
  void word(std::string_view);
  void word(const void* bytes, int64_t count) { word({static_cast<const char*>(bytes), static_cast<size_t>(count)}); }
  void number(int64_t value) { word(std::to_string(value)); }

  size_t size() const { return commands_.size(); }
  /// As RedisClient::run().
  const char* run(RedisClient&, bool waits);
  bool done(size_t command) const { return commands_[command].done; }

 private:
  void size_line(char kind, size_t size);
  std::string bytes_;
  std::vector<RedisCommand> commands_;
  std::vector<size_t> begins_;  // of each in bytes_
  std::vector<size_t> keys_;    // the same of its key
};

}  // namespace hctr
