// An HTTP/1.1 server on epoll: a few threads, each with a part of the connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "serve/http_message.h"
#include "serve/serve_options.h"

namespace hctr::serve {

class HttpLoop;
struct HttpTotals;

class HttpServer {
 public:
  /// Starts listening. `port` 0: any free port. `handler` is called by the server's threads and must not block. Errors:
  /// Error(io) naming address and port.
  HttpServer(const std::string& address, int port, int threads, const HttpLimits&, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  int64_t connections() const;
  /// Accepts no more connections, closes idle ones, and waits at most this long for pending responses; then closes all
  /// connections. Returns whether every response was sent.
  bool drain(std::chrono::milliseconds);

 private:
  int listener_ = -1, port_ = 0;
  std::shared_ptr<HttpTotals> totals_;
  std::vector<std::unique_ptr<HttpLoop>> loops_;
};

}  // namespace hctr::serve
