#include "serve/http_message.h"

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr::serve {
namespace {

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 499:
      return "Client Closed Request";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

}  // namespace

HttpResponse http_error(int status, const std::string& message) {
  HttpResponse response{.status = status, .body = Json(Json::Object{{"error", Json(message)}}).text()};
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

std::string http_text(const HttpResponse& response, bool keep_alive) {
  std::string text = cat("HTTP/1.1 ", response.status, " ", reason_phrase(response.status), "\r\n");
  if (!response.body.empty()) text += cat("Content-Type: ", response.type, "\r\n");
  for (const auto& [name, value] : response.headers) text += cat(name, ": ", value, "\r\n");
  text += cat("Content-Length: ", response.body.size(), keep_alive ? "" : "\r\nConnection: close", "\r\n\r\n");
  text.reserve(text.size() + response.body.size());
  return text += response.body;
}

}  // namespace hctr::serve
