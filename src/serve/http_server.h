// A server of HTTP/1.1 on epoll: a few threads, each with its share of the connections.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "serve/http_message.h"
#include "serve/serve_options.h"

namespace hctr::serve {

class HttpLoop;

class HttpServer {
 public:
  /// Listens at once. `port` 0: any that is free. `handler` is called by the threads of the server and must not block.
  /// Errors: Error(io) naming address and port.
  HttpServer(const std::string& address, int port, int threads, const HttpLimits&, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  int64_t connections() const { return *connections_; }
  /// Accepts no more connections and closes those without a request; waits at most so long for the answers that are
  /// due, then closes all. Whether every answer went out.
  bool drain(std::chrono::milliseconds);

 private:
  int listener_ = -1, port_ = 0;
  std::shared_ptr<std::atomic<int64_t>> connections_ = std::make_shared<std::atomic<int64_t>>(0);
  std::vector<std::unique_ptr<HttpLoop>> loops_;
};

}  // namespace hctr::serve
