// A batch of Redis commands that are sent together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis_plugin.h"

namespace hctr {

/// Sinks that ignore the reply, or store a single number.
RedisSink no_reply();
RedisSink number_reply(int64_t* number);

class RedisBatch {
 public:
  /// Begins a command. `words`: the number of words after the name and the key.
  void begin(std::string_view name, const std::string& key, size_t words, bool reads, RedisSink sink = no_reply());
  void word(std::string_view);
  void word(const void* bytes, int64_t count) { word({static_cast<const char*>(bytes), static_cast<size_t>(count)}); }
  void number(int64_t value) { word(std::to_string(value)); }

  size_t size() const { return commands_.size(); }
  /// Like RedisClient::run().
  const char* run(RedisClient&, bool waits);
  bool done(size_t command) const { return commands_[command].done; }

 private:
  void size_line(char kind, size_t size);
  std::string bytes_;
  std::vector<RedisCommand> commands_;
  std::vector<size_t> begins_;  // [command] offset in bytes_
  std::vector<size_t> keys_;    // [command] offset of the command's key in bytes_
};

}  // namespace hctr
