// Listens for connections of other processes.
#pragma once

#include <string>

#include "core/comm/tcp_socket.h"

namespace hctr {

class TcpListener {
 public:
  /// `address`: the address at which others reach this host; listens at the interface that has it. Listens at all
  /// interfaces if it is empty, belongs to no interface (as behind NAT), or is a name that resolves to this host only
  /// locally; all_because() then has the reason. Port 0: any free one. Errors: Error(comm).
  explicit TcpListener(int port, const std::string& address = "");
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  int port() const { return port_; }
  /// poll() reports it readable when accept() has a connection.
  int descriptor() const { return descriptor_; }
  bool at_all_interfaces() const { return all_; }
  /// The reason why it does not listen only at the interface of `address`; empty if it does, or without `address`.
  const std::string& all_because() const { return all_because_; }
  /// The next connection; none if there was none until `end`.
  TcpSocket accept(TcpClock::time_point end) const;

 private:
  void listen_at_all(int port);
  [[noreturn]] void fail(int port, int error);

  int descriptor_ = -1, port_ = 0;
  bool all_ = false;
  std::string all_because_;
};

}  // namespace hctr
