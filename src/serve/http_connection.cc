#include "serve/http_connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

int64_t number_in(std::string_view text) {
  int64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string_view header_of(const HttpConnection::Answer& answer, std::string_view name) {
  for (const auto& [own, value] : answer.headers)
    if (own == name) return value;
  return {};
}

}  // namespace

HttpConnection::HttpConnection(const std::string& address) : host_(address) {
  const size_t colon = address.rfind(':');
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const std::string host = address.substr(0, colon), port = colon == address.npos ? "8000" : address.substr(colon + 1);
  if (const int problem = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); problem != 0)
    throw Error(Kind::io, cat("'", address, "' is not the address of a service: ", ::gai_strerror(problem)));
  int why = 0;
  for (const addrinfo* one = found; one && socket_ < 0; one = one->ai_next) {
    socket_ = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 && ::connect(socket_, one->ai_addr, one->ai_addrlen) == 0) break;
    why = errno;
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  ::freeaddrinfo(found);
  if (socket_ < 0) throw Error(Kind::io, cat("no service at ", address, ": ", std::generic_category().message(why)));
  const timeval minute{60, 0};
  const int yes = 1;
  (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute);
  (void)::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute);
  (void)::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

HttpConnection::~HttpConnection() { ::close(socket_); }

size_t HttpConnection::Answer::json_bytes() const {
  const std::string_view given = header_of(*this, "inference-header-content-length");
  return given.empty() ? body.size() : std::min(body.size(), static_cast<size_t>(number_in(given)));
}

HttpConnection::Answer HttpConnection::ask(const std::string& method, const std::string& path, const std::string& body,
                                           size_t json_bytes) {
  std::string text = cat(method, " ", path, " HTTP/1.1\r\nHost: ", host_, "\r\nContent-Length: ", body.size(), "\r\n");
  if (json_bytes > 0) text += cat("Inference-Header-Content-Length: ", json_bytes, "\r\n");
  text += "\r\n";
  text += body;
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) throw Error(Kind::io, cat("the service at ", host_, " closed the connection"));
    sent += static_cast<size_t>(count);
  }
  const auto receive_until = [&](const auto& done) {
    char part[1 << 14];
    while (!done()) {
      const ssize_t count = ::recv(socket_, part, sizeof part, 0);
      if (count <= 0) throw Error(Kind::io, cat("the service at ", host_, " has not answered"));
      rest_.append(part, static_cast<size_t>(count));
    }
  };
  receive_until([&] { return rest_.find("\r\n\r\n") != rest_.npos; });
  const size_t end = rest_.find("\r\n\r\n") + 4;
  Answer answer;
  const std::string_view head = std::string_view(rest_).substr(0, end - 2);
  answer.status = static_cast<int>(number_in(head.substr(std::min(head.find(' ') + 1, head.size()))));
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t line = head.find("\r\n", at), colon = std::min(head.find(':', at), line);
    std::string name(head.substr(at, colon - at));
    for (char& c : name)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    const size_t value = std::min(head.find_first_not_of(' ', colon + 1), line);
    answer.headers.emplace_back(std::move(name), head.substr(value, line - value));
    at = line + 2;
  }
  const auto bytes = static_cast<size_t>(number_in(header_of(answer, "content-length")));
  receive_until([&] { return rest_.size() >= end + bytes; });
  answer.body = rest_.substr(end, bytes);
  rest_.erase(0, end + bytes);
  return answer;
}

}  // namespace hctr::serve
