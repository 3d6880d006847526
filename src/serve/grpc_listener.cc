#include "serve/grpc_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/expect.h"
#include "serve/listener.h"

namespace hctr::serve {
namespace {

/// The inode of a descriptor's socket; 0: the descriptor is closed, or is no socket.
ino_t socket_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

}  // namespace

GrpcListener::GrpcListener(const std::string& address, int port, int64_t most_connections)
    : listener_(listen_at(address, port)),
      port_(port_of(listener_)),
      most_connections_(std::min<int64_t>(most_connections, most_grpc_descriptor() / 2)) {
  wake_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ >= 0) return;
  ::close(listener_);
  throw Error(Kind::io, "the system has no more file descriptors for gRPC");
}

GrpcListener::~GrpcListener() {
  stop();
  ::close(wake_);
}

void GrpcListener::start(GrpcServer& server) {
  thread_ = std::thread([this, &server] { run(server); });
}

void GrpcListener::stop() {
  if (listener_ < 0) return;
  ends_ = true;
  const uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  ::close(listener_);
  listener_ = -1;
}

bool GrpcListener::is_full() {
  if (static_cast<int64_t>(open_.size()) >= most_connections_)
    std::erase_if(open_, [](const auto& one) { return socket_of(one.first) != one.second; });
  return static_cast<int64_t>(open_.size()) >= most_connections_;
}

void GrpcListener::run(GrpcServer& server) {
  const int most = most_grpc_descriptor();
  pollfd waits[2] = {{.fd = listener_, .events = POLLIN, .revents = 0}, {.fd = wake_, .events = POLLIN, .revents = 0}};
  while (!ends_) {
    if (::poll(waits, 2, -1) < 0) continue;
    for (int socket; !ends_ && (socket = accept_next(listener_)) >= 0;) {
      if (socket >= most || is_full()) {
        ::close(socket);
        continue;
      }
      open_.insert_or_assign(socket, socket_of(socket));
      server.take_connection(socket);
    }
  }
}

}  // namespace hctr::serve
