// The gRPC calls of KServe's v2 protocol and of Triton's extensions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/grpc_plugin.h"
#include "serve/serve_core.h"

namespace hctr::serve {

/// Thread-safe.
class GrpcApi {
 public:
  /// The core must outlive this object.
  explicit GrpcApi(ServeCore& core) : core_(core) {}

  GrpcHandler handler();
  void handle(std::string_view method, GrpcBytes request, int64_t left_us, std::shared_ptr<GrpcCall>);

 private:
  void infer(std::string_view bytes, int64_t left_us, bool in_stream, const std::shared_ptr<GrpcCall>&);
  /// The response to a call that needs no waiting.
  std::string respond(std::string_view method, std::string_view request);
  std::string respond_on_regions(SharedRegion::Kind, std::string_view call, std::string_view request);
  bool handle_control(std::string_view method, std::string_view request, const std::shared_ptr<GrpcCall>&);

  ServeCore& core_;
};

}  // namespace hctr::serve
