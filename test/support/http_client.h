// A client of HTTP/1.1 for tests: one connection on the loopback.
#pragma once

#include <map>
#include <string>

namespace hctr::test {

struct HttpAnswer {
  int status = 0;                              // 0: the server has closed the connection
  std::map<std::string, std::string> headers;  // names in lower case
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

  // In parts. send() returns false where the server does not take the bytes any more.
  bool send(const std::string& bytes);
  HttpAnswer receive();
  bool closed_by_server();

 private:
  int socket_ = -1;
  std::string rest_;
};

}  // namespace hctr::test
