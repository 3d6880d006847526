#include "serve/http_server.h"

#include <unistd.h>

#include <algorithm>
#include <thread>

#include "serve/http_loop.h"
#include "serve/listener.h"

namespace hctr::serve {

HttpServer::HttpServer(const std::string& address, int port, int threads, const HttpLimits& limits, HttpHandler handler)
    : totals_(std::make_shared<HttpTotals>()) {
  listener_ = listen_at(address, port);
  port_ = port_of(listener_);
  for (int i = 0; i < threads; ++i) loops_.push_back(std::make_unique<HttpLoop>(listener_, limits, handler, totals_));
}

HttpServer::~HttpServer() {
  loops_.clear();
  ::close(listener_);
}

int64_t HttpServer::connections() const { return totals_->connections; }

bool HttpServer::drain(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  for (const auto& loop : loops_) loop->begin_drain();
  const auto drained = [&] { return std::ranges::all_of(loops_, [](const auto& loop) { return loop->drained(); }); };
  while (!drained()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace hctr::serve
