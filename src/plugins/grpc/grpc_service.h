// A gRPC server that passes the serialized messages of any method to the program, and a client that calls any server.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "serve/grpc_plugin.h"

namespace hctr::serve {

class CarryingService : public grpc::CallbackGenericService {
 public:
  explicit CarryingService(GrpcHandler handler) : handler_(handler) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

 private:
  GrpcHandler handler_;
};

/// Converts between a ByteBuffer and contiguous bytes.
std::string joined(const grpc::ByteBuffer&);
grpc::ByteBuffer buffer_of(GrpcBytes);

}  // namespace hctr::serve
