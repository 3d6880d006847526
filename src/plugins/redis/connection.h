// A connection to one Redis node, and what waits for its replies.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "plugins/redis/reply_reader.h"
#include "plugins/redis/tls.h"

namespace hctr {

using RedisClock = std::chrono::steady_clock;

struct RedisAddress {
  std::string host{};
  int port = 0;
  std::string text() const { return host + ":" + std::to_string(port); }
  auto operator<=>(const RedisAddress&) const = default;
};

/// A socket that does not block; commands and replies pass concurrently. Members throw std::runtime_error with the
/// reason, after which the connection is of no use.
class RedisConnection {
 public:
  /// Connects, shakes hands and logs in. `replica`: of which reads are asked.
  RedisConnection(const RedisAddress&, const RedisSettings&, SSL_CTX* tls, bool replica,
                  RedisClock::time_point deadline);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// The target is to live until its reply is there.
  void queue(const char* bytes, size_t count, ReplyTarget& target);
  bool waits() const { return !targets_.empty(); }
  int descriptor() const { return socket_; }
  const RedisAddress& address() const { return address_; }
  bool has_to_send() const { return sent_ < out_.size(); }
  /// Sends and receives what is possible now; to be called when poll() says so.
  void proceed();
  /// One command, and its reply.
  RedisReply ask(const std::string& command, RedisClock::time_point deadline, std::string* error = nullptr);

 private:
  void connect(RedisClock::time_point deadline);
  void wait_for(short events, RedisClock::time_point deadline) const;
  void send();
  void receive();

  RedisAddress address_;
  int socket_ = -1;
  std::unique_ptr<TlsStream> tls_{};
  std::string out_{}, plain_{};
  size_t sent_ = 0;
  ReplyReader reader_{};
  std::deque<ReplyTarget*> targets_{};
};

/// "*2\r\n$3\r\nGET\r\n$1\r\na\r\n" of {"GET", "a"}.
std::string redis_command(std::initializer_list<std::string_view> words);

}  // namespace hctr
