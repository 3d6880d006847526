#include "support/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

namespace hctr::test {

HttpClient::HttpClient(int port) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{60, 0};  // after this timeout the test fails instead of blocking
  (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  (void)::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    ADD_FAILURE() << "no server at port " << port;
}

HttpClient::~HttpClient() { ::close(socket_); }

bool HttpClient::send(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

size_t HttpClient::send_now(const std::string& bytes) {
  const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return count > 0 ? static_cast<size_t>(count) : 0;
}

HttpAnswer HttpClient::ask(const std::string& method, const std::string& path, const std::string& body,
                           const std::map<std::string, std::string>& headers) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  (void)send(text);  // may fail, because the server may have answered early and closed the connection
  return receive();
}

HttpAnswer HttpClient::receive() {
  HttpAnswer answer;
  char part[1 << 14];
  const auto more = [&] {
    const ssize_t count = ::recv(socket_, part, sizeof part, 0);
    if (count > 0) rest_.append(part, static_cast<size_t>(count));
    return count > 0;
  };
  size_t end = 0;
  while ((end = rest_.find("\r\n\r\n")) == std::string::npos)
    if (!more()) return answer;
  const std::string head = rest_.substr(0, end + 2);
  rest_.erase(0, end + 4);
  answer.status = std::atoi(head.c_str() + head.find(' '));
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t line = head.find("\r\n", at), colon = head.find(": ", at);
    std::string name = head.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    answer.headers[name] = head.substr(colon + 2, line - colon - 2);
    at = line + 2;
  }
  const size_t bytes = std::strtoul(answer.headers["content-length"].c_str(), nullptr, 10);
  while (rest_.size() < bytes)
    if (!more()) return {};
  answer.body = rest_.substr(0, bytes);
  rest_.erase(0, bytes);
  return answer;
}

size_t HttpClient::skip(size_t bytes) {
  std::string dropped(bytes, ' ');
  size_t count = 0;
  while (count < bytes) {
    const ssize_t more = ::recv(socket_, dropped.data(), bytes - count, 0);
    if (more <= 0) break;
    count += static_cast<size_t>(more);
  }
  return count;
}

bool HttpClient::has_bytes() {
  char byte = 0;
  return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool HttpClient::closed_by_server() {
  char byte = 0;
  return ::recv(socket_, &byte, 1, 0) <= 0;
}

}  // namespace hctr::test
