// An HTTP/1.1 client for tests, with one loopback connection.
#pragma once

#include <map>
#include <string>

namespace hctr::test {

struct HttpAnswer {
  int status = 0;                              // 0: the server closed the connection
  std::map<std::string, std::string> headers;  // keys are lower-case header names
  std::string body;
};

class HttpClient {
 public:
  explicit HttpClient(int port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends a request with a body and waits for the answer.
  HttpAnswer ask(const std::string& method, const std::string& path, const std::string& body = "",
                 const std::map<std::string, std::string>& headers = {});
  HttpAnswer get(const std::string& path) { return ask("GET", path); }
  HttpAnswer post(const std::string& path, const std::string& body) { return ask("POST", path, body); }

  // For requests that are sent in parts. send() returns false if the server no longer accepts bytes.
  bool send(const std::string& bytes);
  HttpAnswer receive();
  /// Sends as many bytes as the socket accepts without waiting. Returns their number.
  size_t send_now(const std::string& bytes);
  /// Reads `bytes` bytes and drops them. Returns the number of bytes before the server closed the connection.
  size_t skip(size_t bytes);
  bool closed_by_server();
  /// Whether bytes of an answer have arrived. Does not wait.
  bool has_bytes();

 private:
  int socket_ = -1;
  std::string rest_;
};

}  // namespace hctr::test
