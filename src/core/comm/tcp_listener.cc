#include "core/comm/tcp_listener.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/expect.h"
#include "core/base/host_name.h"

namespace hctr {
namespace {

constexpr int kListenBacklog = 1024;

int open_listener(int family) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (descriptor >= 0) ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return descriptor;
}

bool means_this_host_only(const addrinfo& address) {
  if (address.ai_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr) >> 24 == 127;
  return address.ai_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
}

}  // namespace

TcpListener::TcpListener(int port, const std::string& address) {
  std::string why;
  const auto list = address.empty() ? nullptr : addresses_of(address, port, why);
  for (const addrinfo* each = list.get(); each && descriptor_ < 0; each = each->ai_next) {
    if (means_this_host_only(*each) && !is_loopback(address)) {
      why = "on this host the name resolves to the loopback address";
      continue;
    }
    descriptor_ = open_listener(each->ai_family);
    if (descriptor_ < 0) continue;
    if (::bind(descriptor_, each->ai_addr, each->ai_addrlen) == 0) break;
    if (errno != EADDRNOTAVAIL) fail(port, errno);
    why = "no interface of this host has this address";
    ::close(std::exchange(descriptor_, -1));
  }
  if (descriptor_ < 0) {
    listen_at_all(port);
    if (!address.empty()) all_because_ = why;
  }
  if (::listen(descriptor_, kListenBacklog) != 0) fail(port, errno);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&bound), &size);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

void TcpListener::listen_at_all(int port) {
  all_ = true;
  sockaddr_storage address{};
  socklen_t size = 0;
  descriptor_ = open_listener(AF_INET6);
  if (descriptor_ >= 0) {
    const int off = 0;
    ::setsockopt(descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    auto& any = reinterpret_cast<sockaddr_in6&>(address);
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<uint16_t>(port));
    size = sizeof any;
  } else {  // the kernel has no IPv6
    descriptor_ = open_listener(AF_INET);
    auto& any = reinterpret_cast<sockaddr_in&>(address);
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<uint16_t>(port));
    size = sizeof any;
  }
  if (descriptor_ < 0) throw Error(Kind::comm, cat("socket: ", std::strerror(errno)));
  if (::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size) != 0) fail(port, errno);
}

void TcpListener::fail(int port, int error) {
  ::close(descriptor_);
  throw Error(Kind::comm, cat(host_name(), " cannot listen for other processes on port ", port, ": ",
                              std::strerror(error), error == EADDRINUSE ? "; another MASTER_PORT may be free" : ""));
}

TcpListener::~TcpListener() { ::close(descriptor_); }

TcpSocket TcpListener::accept(TcpClock::time_point end) const {
  for (;;) {
    TcpSocket socket(::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.connected()) {
      send_at_once(socket.descriptor());
      return socket;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ECONNABORTED)
      throw Error(Kind::comm, cat("accept: ", std::strerror(errno)));
    if (!wait_until_ready(descriptor_, POLLIN, end)) return TcpSocket();
  }
}

}  // namespace hctr
