// TCP sockets with time limits, whose errors name the two ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

using TcpClock = std::chrono::steady_clock;

/// A connection. Moves own it. Errors of all members: Error(comm).
class TcpSocket {
 public:
  TcpSocket() = default;
  explicit TcpSocket(int descriptor) : descriptor_(descriptor) {}
  ~TcpSocket();
  TcpSocket(TcpSocket&& other) noexcept : descriptor_(other.release()) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept;

  bool connected() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  int release();
  /// The address of the other end, "10.0.0.7".
  std::string peer_address() const;

  // Messages: a text with its length. `end`: when to give up.
  void send_text(std::string_view, TcpClock::time_point end) const;
  /// `most`: bytes, since the other end may be another program.
  std::string receive_text(size_t most, TcpClock::time_point end) const;

 private:
  int descriptor_ = -1;
};

/// Connects, and tries again until `end` while nobody listens there yet. `what`: for messages, "process 0".
TcpSocket connect_to(const std::string& host, int port, const std::string& what, TcpClock::time_point end);

/// Connects to one of several addresses of a host. All are tried at once, and the first counts that answers and
/// `suits`, which may exchange messages and takes part in the time until `end`. Errors: Error(comm) with what each has
/// said.
TcpSocket connect_to_any(const std::vector<std::string>& addresses, int port, const std::string& what,
                         TcpClock::time_point end, const std::function<bool(const TcpSocket&)>& suits);

/// Where others connect to.
class TcpListener {
 public:
  /// All interfaces; port 0: any free one.
  explicit TcpListener(int port);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }
  /// poll() finds it readable when accept() has a connection.
  int descriptor() const { return descriptor_; }
  /// The next connection; none when there was none until `end`.
  TcpSocket accept(TcpClock::time_point end) const;

 private:
  int descriptor_ = -1, port_ = 0;
};

/// Milliseconds for poll() until then, at least 0.
int milliseconds_until(TcpClock::time_point end);

}  // namespace hctr
