// The gRPC front end of the service, and a gRPC client for measurements.
#pragma once

#include <memory>
#include <string>

#include "serve/grpc_listener.h"
#include "serve/grpc_plugin.h"
#include "serve/serve_options.h"

namespace hctr::serve {

/// Loads the plug-in at the first call. Errors: Error(io) naming what is missing.
const GrpcPlugin& grpc_plugin();
/// Why the plug-in cannot be loaded; empty if it can.
std::string why_no_grpc();

/// A gRPC server that listens.
class GrpcFront {
 public:
  /// `port` 0: any free port. Errors: Error(io) naming address and port.
  GrpcFront(const std::string& address, int port, const HttpLimits&, GrpcHandler);
  int port() const { return listener_.port(); }
  /// Accepts no more connections and calls, and waits at most `ms` for running calls.
  void drain(int64_t ms);

 private:
  std::unique_ptr<GrpcServer> server_;
  GrpcListener listener_;  // declared last, so that it is destroyed before the server
};

std::unique_ptr<GrpcClient> connect_grpc(const std::string& address);

struct GrpcAnswer {
  int status = 0;
  std::string message, response;
};
GrpcAnswer call_grpc(GrpcClient&, const std::string& method, const std::string& request, int64_t timeout_us);

}  // namespace hctr::serve
