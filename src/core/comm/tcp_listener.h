// Where other processes connect to.
#pragma once

#include <string>

#include "core/comm/tcp_socket.h"

namespace hctr {

class TcpListener {
 public:
  /// `address`: by which the others reach this host; listens at the interface that has it. Listens at all interfaces
  /// where it is empty, belongs to no interface (as behind NAT), or is a name that only means this host to itself (as
  /// many hosts list their own name); then all_because() says so. Port 0: any free one. Errors: Error(comm).
  explicit TcpListener(int port, const std::string& address = "");
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }
  /// poll() finds it readable when accept() has a connection.
  int descriptor() const { return descriptor_; }
  bool at_all_interfaces() const { return all_; }
  /// Why it does not listen at the interface of `address` alone; empty if it does, or if there is no `address`.
  const std::string& all_because() const { return all_because_; }
  /// The next connection; none when there was none until `end`.
  TcpSocket accept(TcpClock::time_point end) const;

 private:
  void listen_at_all(int port);
  [[noreturn]] void fail(int port, int error);

  int descriptor_ = -1, port_ = 0;
  bool all_ = false;
  std::string all_because_;
};

}  // namespace hctr
