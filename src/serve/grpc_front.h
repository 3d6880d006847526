// The gRPC front end of the service, and a gRPC client for measurements.
#pragma once

#include <memory>
#include <string>

#include "serve/grpc_plugin.h"

namespace hctr::serve {

/// Loads the plug-in at the first call. Errors: Error(io) naming what is missing.
const GrpcPlugin& grpc_plugin();
/// Why the plug-in cannot be loaded; empty if it can.
std::string why_no_grpc();

/// Errors: Error(io) naming address and port.
std::unique_ptr<GrpcServer> start_grpc(const std::string& address, int port, int64_t most_bytes, GrpcHandler);
std::unique_ptr<GrpcClient> connect_grpc(const std::string& address);

struct GrpcAnswer {
  int status = 0;
  std::string message, response;
};
GrpcAnswer call_grpc(GrpcClient&, const std::string& method, const std::string& request, int64_t timeout_us);

}  // namespace hctr::serve
