#include "serve/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <system_error>
#include <thread>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first) ::freeaddrinfo(first);
  }
};

int descriptor_limit() {
  rlimit limit{};
  constexpr int kMost = std::numeric_limits<int>::max();
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > kMost) return kMost;
  return static_cast<int>(limit.rlim_cur);
}

int spare_descriptors() { return std::min(descriptor_limit() / 4, 256); }

}  // namespace

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

int accept_next(int listener) {
  const int socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) {
    if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return -1;
  }
  const int yes = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

int most_http_descriptor() { return descriptor_limit() - spare_descriptors(); }
int most_grpc_descriptor() { return descriptor_limit() - spare_descriptors() / 2; }

}  // namespace hctr::serve
