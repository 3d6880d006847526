// Parses HTTP/1.1 requests incrementally (RFC 9112).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/http_message.h"
#include "serve/serve_options.h"

namespace hctr::serve {

class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits) : limits_(limits) {}

  /// Consumes bytes up to the end of a request. Returns the number of consumed bytes.
  size_t feed(std::string_view bytes);
  bool complete() const { return state_ == State::complete; }
  /// Whether the first bytes of a request have arrived.
  bool begun() const { return begun_; }
  /// Whether the client waits for "100 Continue" before sending the body. Returns true once per request.
  bool takes_continue();
  /// The HTTP status of a refusal; 0: not refused. After a refusal, close the connection.
  int refused() const { return refused_; }
  const std::string& why() const { return why_; }
  int64_t bytes() const { return bytes_; }  ///< bytes of the current request so far
  /// Returns the complete request, and starts the next one.
  HttpRequest take();

 private:
  enum class State { request_line, headers, body, chunk_size, chunk_data, chunk_end, trailers, complete, refused };
  void refuse(int status, std::string why);
  /// Appends bytes to `line_` up to the line's end. Returns whether the line is complete.
  bool read_line(std::string_view bytes, size_t& at);
  void on_line();
  void on_request_line();
  void on_header();
  void on_headers_end();
  void on_chunk_size();
  void add_body(std::string_view bytes, size_t& at);

  HttpLimits limits_;
  State state_ = State::request_line;
  HttpRequest request_;
  std::string line_;
  int64_t header_bytes_ = 0, left_ = 0, bytes_ = 0;
  bool begun_ = false, http_1_0_ = false, expects_continue_ = false;
  int refused_ = 0;
  std::string why_;
};

}  // namespace hctr::serve
