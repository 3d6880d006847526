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

  /// That of this end; empty where the system does not say it.
  std::string own_address() const;

  // `end`: when to give up.
  void send_bytes(std::string_view, TcpClock::time_point end) const;
  void receive_bytes(std::span<char>, TcpClock::time_point end) const;
  // Messages: a text with its length.
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

/// Milliseconds for poll() until then, at least 0.
int milliseconds_until(TcpClock::time_point end);
/// Waits until the descriptor is ready. False at `end`. Errors: Error(comm).
bool wait_until_ready(int descriptor, short events, TcpClock::time_point end);
/// From now on the system sends each message at once.
void send_at_once(int descriptor);

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
/// The addresses of a name. `why`: what is wrong where there are none.
std::unique_ptr<addrinfo, FreeAddresses> addresses_of(const std::string& host, int port, std::string& why);
/// Whether the address, or the name as it is written, means this host alone.
bool is_loopback(const std::string& address);

}  // namespace hctr
