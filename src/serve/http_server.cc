#include "serve/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/expect.h"
#include "serve/http_loop.h"

namespace hctr::serve {
namespace {

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first) ::freeaddrinfo(first);
  }
};

int listen_at(const std::string& address, int port) {
  AddressList found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const std::string service = std::to_string(port);
  if (const int problem = ::getaddrinfo(address.c_str(), service.c_str(), &hints, &found.first); problem != 0)
    throw Error(Kind::io, cat("cannot listen at '", address, "': ", ::gai_strerror(problem)));
  std::string why;
  for (const addrinfo* one = found.first; one; one = one->ai_next) {
    const int socket = ::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) continue;
    const int yes = 1;
    (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket, one->ai_addr, one->ai_addrlen) == 0 && ::listen(socket, 1024) == 0) return socket;
    why = std::generic_category().message(errno);
    ::close(socket);
  }
  throw Error(Kind::io, cat("cannot listen at ", address, ", port ", port, ": ", why));
}

int port_of(int socket) {
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return 0;
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&own)->sin6_port
                                         : reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
}

}  // namespace

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
