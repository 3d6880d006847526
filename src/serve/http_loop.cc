#include "serve/http_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/expect.h"
#include "serve/listener.h"

namespace hctr::serve {
namespace {

constexpr uint64_t kListener = 0, kWake = 1;
constexpr size_t kReadBytes = size_t{1} << 16;
// Maximum number of refused connections that stay open until the client has read the refusal.
constexpr int64_t kMostRefused = 256;
constexpr std::chrono::seconds kLingerTime{2};
constexpr const char* kRetry = ": retry later, or start the service with a larger --max-body";

HttpLoop::Time now() { return std::chrono::steady_clock::now(); }

void watch_socket(int poll, int operation, int socket, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  (void)::epoll_ctl(poll, operation, socket, &event);
}

/// Discards the bytes that have arrived, up to a few KiB.
void discard_received(int socket) {
  char bytes[4096];
  for (int i = 0; i < 16 && ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT) > 0; ++i) {
  }
}

void wake_up(int descriptor) {
  const uint64_t one = 1;
  (void)!::write(descriptor, &one, sizeof one);
}

}  // namespace

HttpLoop::HttpLoop(int listener, const HttpLimits& limits, HttpHandler handler, std::shared_ptr<HttpTotals> totals)
    : listener_(listener),
      most_descriptor_(most_http_descriptor()),
      limits_(limits),
      handler_(std::move(handler)),
      totals_(std::move(totals)) {
  poll_ = ::epoll_create1(EPOLL_CLOEXEC);
  mailbox_->wake = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (poll_ < 0 || mailbox_->wake < 0) {
    if (poll_ >= 0) ::close(poll_);
    throw Error(Kind::io, "the system has no epoll, or no more file descriptors, for an HTTP server");
  }
  watch_socket(poll_, EPOLL_CTL_ADD, listener_, EPOLLIN | EPOLLEXCLUSIVE, kListener);
  watch_socket(poll_, EPOLL_CTL_ADD, mailbox_->wake, EPOLLIN, kWake);
  thread_ = std::thread([this] { run(); });
}

HttpLoop::~HttpLoop() {
  ends_ = true;
  wake_up(mailbox_->wake);
  thread_.join();
  while (!open_.empty()) close_connection(open_.begin()->first);
  const std::lock_guard lock(mailbox_->mutex);
  ::close(std::exchange(mailbox_->wake, -1));
  ::close(poll_);
}

void HttpLoop::begin_drain() {
  drains_ = true;
  wake_up(mailbox_->wake);
}

void HttpLoop::run() {
  std::vector<epoll_event> events(256);
  Time swept = now();
  while (!ends_) {
    const int count = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), 200);
    for (int e = 0; e < count; ++e) {
      const uint64_t id = events[static_cast<size_t>(e)].data.u64;
      if (id == kListener)
        accept_all();
      else if (id == kWake)
        deliver_answers();
      else if (!serve(id, events[static_cast<size_t>(e)].events))
        close_connection(id);
    }
    if (drains_ && listens_) {
      listens_ = false;
      watch_socket(poll_, EPOLL_CTL_DEL, listener_, 0, kListener);
      swept = {};
    }
    if (now() - swept < std::chrono::milliseconds(200)) continue;
    swept = now();
    close_late();
  }
}

void HttpLoop::accept_all() {
  while (listens_ && !drains_) {
    const int socket = accept_next(listener_);
    if (socket < 0) return;
    if (socket >= most_descriptor_) {
      refuse(socket, "the service has no more file descriptors: raise the limit (ulimit -n)");
      continue;
    }
    if (totals_->connections.fetch_add(1) >= limits_.connections) {
      totals_->connections.fetch_sub(1);
      refuse(socket, cat("the service has ", limits_.connections, " connections, its maximum"));
      continue;
    }
    add(socket);
  }
}

HttpLoop::Connection& HttpLoop::add(int socket) {
  auto connection = std::make_unique<Connection>(limits_);
  connection->socket = socket;
  connection->since = now();
  connection->events = EPOLLIN | EPOLLRDHUP;
  watch_socket(poll_, EPOLL_CTL_ADD, socket, connection->events, next_);
  ++own_connections_;
  return *open_.emplace(next_++, std::move(connection)).first->second;
}

void HttpLoop::refuse(int socket, const std::string& why) {
  const std::string refusal = http_text(http_error(503, why), false);
  (void)::send(socket, refusal.data(), refusal.size(), MSG_NOSIGNAL);
  // The client may be sending its request. Closing a socket that has unread bytes, or that receives more bytes, sends a
  // reset, and the client would lose the refusal.
  if (socket >= most_descriptor_ || refused_ >= kMostRefused) {
    discard_received(socket);
    ::close(socket);
    return;
  }
  Connection& connection = add(socket);
  connection.refused = true;
  ++refused_;
  linger(connection);
}

void HttpLoop::linger(Connection& connection) {
  (void)::shutdown(connection.socket, SHUT_WR);
  connection.lingers = true;
  connection.since = now();
}

bool HttpLoop::serve(uint64_t id, uint32_t events) {
  const auto found = open_.find(id);
  if (found == open_.end()) return true;
  Connection& connection = *found->second;
  if (events & (EPOLLERR | EPOLLHUP)) return false;
  if (connection.lingers) return discard(connection);
  if (events & EPOLLOUT && !flush(connection)) return false;
  if (events & (EPOLLIN | EPOLLRDHUP) && !connection.busy && !connection.lingers && connection.output.empty())
    receive(connection);
  const bool stays = advance(id, connection);
  if (stays) watch(id, connection);
  return stays;
}

void HttpLoop::receive(Connection& connection) {
  char bytes[kReadBytes];
  // One recv() per event, so that one connection does not delay the others.
  const ssize_t count = ::recv(connection.socket, bytes, sizeof bytes, 0);
  if (count > 0) {
    if (!connection.parser.begun() && connection.input.empty()) {
      connection.since = now();
      connection.progress = 0;
    }
    connection.input.append(bytes, static_cast<size_t>(count));
    note_progress(connection, connection.parser.bytes() + std::ssize(connection.input));
    count_bytes(connection, connection.counted + count);
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    connection.saw_end = true;
  }
}

bool HttpLoop::discard(Connection& connection) {
  char bytes[kReadBytes];
  const ssize_t count = ::recv(connection.socket, bytes, sizeof bytes, 0);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void HttpLoop::note_progress(Connection& connection, int64_t bytes) {
  if (bytes - connection.progress < HttpLimits::kProgress) return;
  connection.progress = bytes;
  connection.since = now();
}

void HttpLoop::count_bytes(Connection& connection, int64_t bytes) {
  totals_->bytes.fetch_add(bytes - connection.counted);
  connection.counted = bytes;
}

bool HttpLoop::advance(uint64_t id, Connection& connection) {
  // The next request waits until the client has read the previous answer. Answers to a client that sends and never
  // reads would otherwise fill the memory.
  while (!connection.busy && !connection.closes && connection.output.empty()) {
    if (!connection.input.empty()) {
      const size_t taken = connection.parser.feed(connection.input);
      connection.input.erase(0, taken);
    }
    if (connection.parser.refused() != 0) {
      connection.closes = true;
      return answer(connection, http_error(connection.parser.refused(), connection.parser.why()));
    }
    if (connection.counted > HttpLimits::kSmallRequest && totals_->bytes > limits_.total_bytes()) {
      connection.closes = true;
      return answer(connection, http_error(503, cat("the requests of all clients take too much memory", kRetry)));
    }
    if (connection.parser.takes_continue()) {
      connection.output += "HTTP/1.1 100 Continue\r\n\r\n";
      if (!flush(connection)) return false;
    }
    if (!connection.parser.complete()) break;
    HttpRequest request = connection.parser.take();
    connection.keep_alive = request.keep_alive;
    connection.busy = true;
    handler_(std::move(request), [mailbox = mailbox_, id](HttpResponse response) {
      const std::lock_guard lock(mailbox->mutex);
      if (mailbox->wake < 0) return;
      mailbox->answers.emplace_back(id, std::move(response));
      wake_up(mailbox->wake);
    });
  }
  return connection.busy || connection.lingers || !connection.output.empty() || !connection.saw_end;
}

bool HttpLoop::answer(Connection& connection, const HttpResponse& response) {
  count_bytes(connection, std::ssize(connection.input));
  const bool large = std::ssize(response.body) > HttpLimits::kSmallRequest;
  if (large && totals_->bytes - connection.counted > limits_.total_bytes())
    return answer(connection, http_error(503, cat("answers that clients have not read take too much memory", kRetry)));
  const bool keeps = connection.keep_alive && !connection.closes && !drains_;
  connection.closes = !keeps;
  connection.busy = false;
  connection.output += http_text(response, keeps);
  count_bytes(connection, std::ssize(connection.input) + std::ssize(connection.output));
  connection.since = now();
  connection.progress = 0;
  return flush(connection);
}

bool HttpLoop::flush(Connection& connection) {
  while (connection.sent < connection.output.size()) {
    const ssize_t count = ::send(connection.socket, connection.output.data() + connection.sent,
                                 connection.output.size() - connection.sent, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    connection.sent += static_cast<size_t>(count);
    note_progress(connection, static_cast<int64_t>(connection.sent));
  }
  if (connection.output.capacity() > kReadBytes)
    connection.output = {};
  else
    connection.output.clear();
  connection.sent = 0;
  connection.since = now();
  connection.progress = 0;
  count_bytes(connection, std::ssize(connection.input));
  if (!connection.closes) return true;
  // The client may still be sending: see refuse().
  connection.input = {};
  count_bytes(connection, 0);
  linger(connection);
  if (drains_) discard_received(connection.socket);
  return !drains_;
}

void HttpLoop::deliver_answers() {
  uint64_t count = 0;
  (void)!::read(mailbox_->wake, &count, sizeof count);
  std::vector<std::pair<uint64_t, HttpResponse>> answers;
  {
    const std::lock_guard lock(mailbox_->mutex);
    answers.swap(mailbox_->answers);
  }
  for (const auto& [id, response] : answers) {
    const auto found = open_.find(id);
    if (found == open_.end()) continue;
    Connection& connection = *found->second;
    if (answer(connection, response) && advance(id, connection))
      watch(id, connection);
    else
      close_connection(id);
  }
}

void HttpLoop::watch(uint64_t id, Connection& connection) {
  const bool reads = connection.lingers ||
                     (!connection.busy && !connection.closes && !connection.saw_end && connection.output.empty());
  const uint32_t wanted = (reads ? static_cast<uint32_t>(EPOLLIN | EPOLLRDHUP) : 0u) |
                          (connection.output.empty() ? 0u : static_cast<uint32_t>(EPOLLOUT));
  if (wanted == connection.events) return;
  connection.events = wanted;
  watch_socket(poll_, EPOLL_CTL_MOD, connection.socket, wanted, id);
}

void HttpLoop::close_late() {
  const Time at = now();
  std::vector<uint64_t> late;
  for (auto& [id, connection] : open_) {
    if (connection->busy) continue;
    const auto passed = at - connection->since;
    if (connection->lingers) {
      if (drains_ || passed > kLingerTime) late.push_back(id);
    } else if (!connection->output.empty()) {
      if (passed > limits_.write_time) late.push_back(id);
    } else if (connection->parser.begun()) {
      if (passed <= limits_.request_time) continue;
      connection->closes = true;
      if (!answer(*connection, http_error(408, "the request did not arrive in time"))) late.push_back(id);
    } else if (drains_ || passed > limits_.idle_time) {
      late.push_back(id);
    }
  }
  for (const uint64_t id : late) close_connection(id);
}

void HttpLoop::close_connection(uint64_t id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  ::close(found->second->socket);
  count_bytes(*found->second, 0);
  found->second->refused ? --refused_ : totals_->connections.fetch_sub(1);
  open_.erase(found);
  --own_connections_;
}

}  // namespace hctr::serve
