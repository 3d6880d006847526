// Listens for TCP connections from other processes.
#pragma once

#include <string>

#include "core/comm/tcp_socket.h"

namespace hctr {

class TcpListener {
 public:
  /// `address`: the address at which other hosts reach this host. Listens only on the interface with that address.
  /// Listens on all interfaces if `address` is empty, belongs to no interface (as behind NAT), or is a name that
  /// resolves to a loopback address on this host; all_because() returns the reason. `port` 0: any free port. Errors:
  /// Error(comm).
  explicit TcpListener(int port, const std::string& address = "");
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }
  /// The descriptor for poll(). It is readable when accept() has a connection.
  int descriptor() const { return descriptor_; }
  bool at_all_interfaces() const { return all_; }
  /// The reason for listening on all interfaces although `address` is not empty. Empty if there is no such reason.
  const std::string& all_because() const { return all_because_; }
  /// Returns the next connection, or an unconnected socket if none arrives until `end`.
  TcpSocket accept(TcpClock::time_point end) const;

 private:
  void listen_at_all(int port);
  [[noreturn]] void fail(int port, int error);

  int descriptor_ = -1, port_ = 0;
  bool all_ = false;
  std::string all_because_;
};

}  // namespace hctr
