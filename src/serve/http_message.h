// Requests and responses of HTTP/1.1.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hctr::serve {

struct HttpRequest {
  std::string method, target;
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers{};  ///< names in lower case
  std::string body{};

  /// The first header of this name; empty if there is none.
  std::string_view header(std::string_view name) const {
    for (const auto& [own, value] : headers)
      if (own == name) return value;
    return {};
  }
};

struct HttpResponse {
  int status = 200;
  std::string type = "application/json", body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// Receives the response. Called once, by any thread.
using Respond = std::function<void(HttpResponse)>;
using HttpHandler = std::function<void(HttpRequest, Respond)>;

/// A response whose body is `{"error": "<message>"}`.
HttpResponse http_error(int status, const std::string& message);
/// The bytes of a response, as sent to the client.
std::string http_text(const HttpResponse&, bool keep_alive);

}  // namespace hctr::serve
