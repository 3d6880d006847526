// An HTTP/1.1 client connection, for measurements and checks of the service.
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
    /// Size of the JSON before the binary tensors; without binary tensors, size of the body.
    size_t json_bytes() const;
  };
  /// Sends a request and waits for the answer. Times out after a minute without progress. `json_bytes`: size of the
  /// JSON before the binary tensors; 0: the whole body is JSON. Errors: Error(io).
  Answer ask(const std::string& method, const std::string& path, const std::string& body = "", size_t json_bytes = 0);

 private:
  int socket_ = -1;
  std::string host_, rest_;
};

}  // namespace hctr::serve
