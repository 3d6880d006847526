// A connection to one Redis node, with the queue of expected replies.
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

/// A non-blocking socket; commands are sent while replies arrive. Members throw std::runtime_error with the reason;
/// afterwards the connection cannot be used.
class RedisConnection {
 public:
  /// Connects, does the TLS handshake and authenticates. `replica`: whether the node is a replica. A replica accepts
  /// reads only after the command READONLY, which the constructor sends.
  RedisConnection(const RedisAddress&, const RedisSettings&, SSL_CTX* tls, bool replica,
                  RedisClock::time_point deadline);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// Queues a command. `target` must live until its reply is complete.
  void queue(const char* bytes, size_t count, ReplyTarget& target);
  bool waits() const { return !targets_.empty(); }
  int descriptor() const { return socket_; }
  const RedisAddress& address() const { return address_; }
  bool has_to_send() const { return sent_ < out_.size(); }
  /// Sends and receives as much as possible without blocking. Call it when poll() reports the socket as ready.
  void proceed();
  /// Sends one command and waits for its reply.
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

/// Encodes a command: {"GET", "a"} becomes "*2\r\n$3\r\nGET\r\n$1\r\na\r\n".
std::string redis_command(std::initializer_list<std::string_view> words);

}  // namespace hctr
