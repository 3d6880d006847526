// TCP sockets with time limits. Error messages name both ends of the connection.
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

/// A TCP connection. Moving transfers ownership. Errors of all members: Error(comm).
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
  /// The peer's address, such as "10.0.0.7".
  std::string peer_address() const;

  /// The local address of the connection; empty if unknown.
  std::string own_address() const;

  // `end` is the time limit.
  void send_bytes(std::string_view, TcpClock::time_point end) const;
  void receive_bytes(std::span<char>, TcpClock::time_point end) const;
  // A message is a length followed by a text.
  void send_text(std::string_view, TcpClock::time_point end) const;
  /// `most`: maximum bytes to accept, because the peer may be another program.
  std::string receive_text(size_t most, TcpClock::time_point end) const;

 private:
  int descriptor_ = -1;
};

/// Connects to the port. Retries until `end` while the port is not open. `what`: the peer's name in messages, such as
/// "process 0".
TcpSocket connect_to(const std::string& host, int port, const std::string& what, TcpClock::time_point end);

/// Connects to one of several addresses of a host. Tries all addresses concurrently and returns the first connection
/// for which suits() returns true. suits() may exchange messages until `end`. Errors: Error(comm) with the error of
/// each address.
TcpSocket connect_to_any(const std::vector<std::string>& addresses, int port, const std::string& what,
                         TcpClock::time_point end, const std::function<bool(const TcpSocket&)>& suits);

/// The timeout for poll() until `end`, in milliseconds, at least 0.
int milliseconds_until(TcpClock::time_point end);
/// Waits until the descriptor is ready. Returns false once `end` has passed. Errors: Error(comm).
bool wait_until_ready(int descriptor, short events, TcpClock::time_point end);
/// Disables Nagle's algorithm, so that the system sends each message immediately.
void send_at_once(int descriptor);

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
/// Resolves a host name. `why`: receives the error if there are no addresses.
std::unique_ptr<addrinfo, FreeAddresses> addresses_of(const std::string& host, int port, std::string& why);
/// Whether the address or name is a loopback address, which means this host wherever it is used.
bool is_loopback(const std::string& address);

}  // namespace hctr
