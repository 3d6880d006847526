// TCP sockets with time limits, whose errors name the two ends.
#pragma once

#include <netdb.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

using TcpClock = std::chrono::steady_clock;

/// A connection. Moving transfers ownership. Errors of all members: Error(comm).
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

  /// The address of this end; empty if unknown.
  std::string own_address() const;

  // `end`: time limit.
  void send_bytes(std::string_view, TcpClock::time_point end) const;
  void receive_bytes(std::span<char>, TcpClock::time_point end) const;
  // Messages: a length and a text.
  void send_text(std::string_view, TcpClock::time_point end) const;
  /// `most`: maximum bytes, because the other end may be another program.
  std::string receive_text(size_t most, TcpClock::time_point end) const;

 private:
  int descriptor_ = -1;
};

/// Connects; retries until `end` while the port is not open. `what`: for messages, "process 0".
TcpSocket connect_to(const std::string& host, int port, const std::string& what, TcpClock::time_point end);

/// Connects to one of several addresses of a host. Tries all at once, and uses the first that answers and `suits`,
/// which may exchange messages within the time until `end`. Errors: Error(comm) with the error of each.
TcpSocket connect_to_any(const std::vector<std::string>& addresses, int port, const std::string& what,
                         TcpClock::time_point end, const std::function<bool(const TcpSocket&)>& suits);

/// Milliseconds until then for poll(), at least 0.
int milliseconds_until(TcpClock::time_point end);
/// Waits until the descriptor is ready. False at `end`. Errors: Error(comm).
bool wait_until_ready(int descriptor, short events, TcpClock::time_point end);
/// Disables Nagle's algorithm: the system sends each message at once.
void send_at_once(int descriptor);

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
/// The addresses of a name. `why`: the error if there are none.
std::unique_ptr<addrinfo, FreeAddresses> addresses_of(const std::string& host, int port, std::string& why);
/// Whether the address or name refers only to this host.
bool is_loopback(const std::string& address);

}  // namespace hctr
