// A client's connection to a service that speaks HTTP/1.1, for measurements and checks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hctr::serve {

class HttpConnection {
 public:
  /// `address`: HOST:PORT. Errors: Error(io).
  explicit HttpConnection(const std::string& address);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  struct Answer {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers{};  ///< names in lower case
    std::string body{};
    /// Of the JSON in front of binary tensors; all of it where there are none.
    size_t json_bytes() const;
  };
  /// Sends a request and waits for the answer, for at most a minute without progress. `json_bytes`: of the JSON in
  /// front of binary tensors; 0: the body is JSON. Errors: Error(io).
  Answer ask(const std::string& method, const std::string& path, const std::string& body = "", size_t json_bytes = 0);

 private:
  int socket_ = -1;
  std::string host_, rest_;
};

}  // namespace hctr::serve
