// Reads requests of HTTP/1.1 from bytes as they arrive (RFC 9112).
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

  /// Takes bytes up to the end of a request. Returns how many.
  size_t feed(std::string_view bytes);
  bool complete() const { return state_ == State::complete; }
  /// Whether a part of a request is there.
  bool begun() const { return begun_; }
  /// Whether the client waits for "100 Continue" before it sends the body. True once.
  bool takes_continue();
  /// The status that refuses the request; 0: none. The connection has to be closed then.
  int refused() const { return refused_; }
  const std::string& why() const { return why_; }
  int64_t bytes() const { return bytes_; }  ///< of the request so far
  /// The request that is complete; the next one begins.
  HttpRequest take();

 private:
  enum class State { request_line, headers, body, chunk_size, chunk_data, chunk_end, trailers, complete, refused };
  void refuse(int status, std::string why);
  /// Adds to a line up to its end. Whether it is whole.
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
