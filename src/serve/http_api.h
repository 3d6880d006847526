// The HTTP calls of KServe's v2 protocol and of Triton's extensions.
#pragma once

#include <string>
#include <vector>

#include "serve/http_message.h"
#include "serve/serve_core.h"

namespace hctr::serve {

/// Thread-safe.
class HttpApi {
 public:
  /// The core must outlive this object.
  HttpApi(ServeCore& core, const HttpLimits& limits) : core_(core), limits_(limits) {}

  /// Responds within this call, or later from another thread.
  void handle(HttpRequest, Respond);

 private:
  using Path = std::vector<std::string>;
  void route(HttpRequest&, const Path&, const Respond&);
  void route_model(HttpRequest&, const Path&, const Respond&);
  void route_repository(HttpRequest&, const Path&, const Respond&);
  void route_regions(HttpRequest&, const Path&, const Respond&);
  // Register a region that the body of a request describes. Errors: Refusal.
  void register_system(const std::string& name, const Json& body);
  void register_cuda(const std::string& name, const Json& body);
  void infer(HttpRequest&, const std::string& model, const std::string& version, const Respond&);
  InferRequest read_request(HttpRequest&, const std::string& model, const std::string& version) const;

  ServeCore& core_;
  HttpLimits limits_;
};

}  // namespace hctr::serve
