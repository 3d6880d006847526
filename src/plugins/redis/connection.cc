#include "plugins/redis/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hctr {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10, kLargestOut = size_t{1} << 20;

[[noreturn]] void failed(const RedisAddress& address, const std::string& why) {
  throw std::runtime_error(address.text() + ": " + why);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

}  // namespace

std::string redis_command(std::initializer_list<std::string_view> words) {
  std::string command = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string_view word : words) {
    command += "$" + std::to_string(word.size()) + "\r\n";
    command += word;
    command += "\r\n";
  }
  return command;
}

RedisConnection::RedisConnection(const RedisAddress& address, const RedisSettings& settings, SSL_CTX* tls, bool replica,
                                 RedisClock::time_point deadline)
    : address_(address) {
  try {
    connect(deadline);
    if (tls) {
      const std::string name = settings.server_name;
      tls_ = std::make_unique<TlsStream>(tls, name.empty() ? address.host : name);
      for (bool done = false; !done;) {
        done = tls_->shake();
        tls_->take_out(out_);
        while (has_to_send()) {
          wait_for(POLLOUT, deadline);
          send();
        }
        if (done) break;
        wait_for(POLLIN, deadline);
        receive();
      }
    }
    const std::string user = settings.user, password = settings.password;
    std::string error;
    if (!password.empty() && (user.empty() || user == "default"))
      ask(redis_command({"AUTH", password}), deadline, &error);
    else if (!password.empty())
      ask(redis_command({"AUTH", user, password}), deadline, &error);
    if (error.empty() && replica) ask(redis_command({"READONLY"}), deadline, &error);
    if (!error.empty()) throw RedisRefused(address_.text() + ": " + error);
  } catch (...) {
    if (socket_ >= 0) ::close(socket_);
    throw;
  }
}

RedisConnection::~RedisConnection() {
  if (socket_ >= 0) ::close(socket_);
}

void RedisConnection::connect(RedisClock::time_point deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int problem = getaddrinfo(address_.host.c_str(), std::to_string(address_.port).c_str(), &hints, &found))
    failed(address_, gai_strerror(problem));
  const std::unique_ptr<addrinfo, FreeAddresses> owner(found);
  std::string why = "no address";
  for (const addrinfo* one = found; one; one = one->ai_next) {
    socket_ = ::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) continue;
    int error = ::connect(socket_, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      wait_for(POLLOUT, deadline);
      socklen_t size = sizeof error;
      ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) {
      const int on = 1;
      ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return;
    }
    why = std::strerror(error);
    ::close(std::exchange(socket_, -1));
  }
  failed(address_, "cannot connect: " + why);
}

void RedisConnection::wait_for(short events, RedisClock::time_point deadline) const {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - RedisClock::now()).count();
    if (left <= 0) failed(address_, "the server did not answer in time");
    pollfd one{.fd = socket_, .events = events, .revents = 0};
    if (::poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 1000))) > 0) return;
  }
}

void RedisConnection::queue(const char* bytes, size_t count, ReplyTarget& target) {
  if (!has_to_send()) {
    out_.clear();
    sent_ = 0;
  }
  if (tls_) {
    tls_->write(bytes, count);
    tls_->take_out(out_);
  } else {
    out_.append(bytes, count);
  }
  targets_.push_back(&target);
}

void RedisConnection::send() {
  while (has_to_send()) {
    const ssize_t sent = ::send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      failed(address_, std::string("sending: ") + std::strerror(errno));
    }
    sent_ += static_cast<size_t>(sent);
  }
  out_.clear();
  if (out_.capacity() > 16 * kLargestOut) out_.shrink_to_fit();
  sent_ = 0;
}

void RedisConnection::receive() {
  thread_local std::vector<char> buffer(kReadBytes);
  while (true) {
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (count == 0) failed(address_, "the server has closed the connection");
    if (count < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      failed(address_, std::string("receiving: ") + std::strerror(errno));
    }
    const auto bytes = static_cast<size_t>(count);
    if (tls_) {
      tls_->arrived(buffer.data(), bytes);
      if (!SSL_is_init_finished(tls_->handle())) continue;
      plain_.clear();
      tls_->read(plain_);
      reader_.feed(plain_.data(), plain_.size());
    } else {
      reader_.feed(buffer.data(), bytes);
    }
    while (!targets_.empty() && reader_.next(*targets_.front())) {
      targets_.front()->complete = true;
      targets_.pop_front();
    }
    if (bytes < buffer.size()) return;
  }
}

void RedisConnection::proceed() {
  if (has_to_send()) send();
  receive();
}

RedisReply RedisConnection::ask(const std::string& command, RedisClock::time_point deadline, std::string* error) {
  RedisReply reply;
  ReplyTarget target{.sink = nullptr, .reply = &reply};
  queue(command.data(), command.size(), target);
  while (waits()) {
    wait_for(static_cast<short>(POLLIN | (has_to_send() ? POLLOUT : 0)), deadline);
    proceed();
  }
  if (!target.error.empty() && !error) failed(address_, target.error);
  if (error) *error = target.error;
  return reply;
}

}  // namespace hctr
