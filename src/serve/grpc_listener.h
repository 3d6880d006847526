// Accepts connections for the gRPC plug-in, and limits their number.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>

#include "serve/grpc_plugin.h"

namespace hctr::serve {

/// gRPC itself has no limit, and its server stops to accept connections for good after an accept() without a free file
/// descriptor (gRPC 1.51). So this program accepts the connections, and uses at most half of the descriptors.
/// Connections above the limit are closed, which a client sees as UNAVAILABLE.
class GrpcListener {
 public:
  /// Listens. `port` 0: any free port. Errors: Error(io) naming address and port.
  GrpcListener(const std::string& address, int port, int64_t most_connections);
  ~GrpcListener();
  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;

  int port() const { return port_; }
  /// Starts passing connections to a server, which must outlive this object or stop().
  void start(GrpcServer& server);
  /// Accepts no more connections.
  void stop();

 private:
  void run(GrpcServer&);
  /// Whether a new connection exceeds the limit.
  bool is_full();

  int listener_ = -1, wake_ = -1, port_ = 0;
  int64_t most_connections_;
  std::atomic<bool> ends_{false};
  // The server closes sockets without a notice. A socket is still open if its descriptor refers to the same inode.
  std::map<int, ino_t> open_;
  std::thread thread_;
};

}  // namespace hctr::serve
