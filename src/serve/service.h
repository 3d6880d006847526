// The complete service: models and front ends.
#pragma once

#include <memory>
#include <string>

#include "serve/grpc_front.h"
#include "serve/http_server.h"
#include "serve/serve_core.h"
#include "serve/serve_options.h"

namespace hctr::serve {

class GrpcApi;
class HttpApi;

class Service {
 public:
  /// Loads models, then listens. Errors: those of ServeCore and HttpServer.
  explicit Service(const ServeOptions&);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const ServeCore& core() const { return *core_; }
  int http_port() const { return http_ ? http_->port() : -1; }
  int metrics_port() const { return metrics_ ? metrics_->port() : -1; }
  int grpc_port() const { return grpc_ ? grpc_->port() : -1; }
  /// Reports "not ready", answers the pending requests, and closes. Returns whether all were answered in time.
  bool drain();

 private:
  ServeOptions options_;
  std::unique_ptr<ServeCore> core_;
  std::unique_ptr<HttpApi> api_;
  std::unique_ptr<GrpcApi> grpc_api_;
  std::unique_ptr<HttpServer> http_, metrics_;
  std::unique_ptr<GrpcFront> grpc_;
};

}  // namespace hctr::serve
