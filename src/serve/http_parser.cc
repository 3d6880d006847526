#include "serve/http_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

constexpr size_t kMostHeaders = 100;

bool is_token(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
std::string lower(std::string_view text) {
  std::string low(text);
  for (char& c : low)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return low;
}
std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

void HttpParser::refuse(int status, std::string why) {
  state_ = State::refused;
  refused_ = status;
  why_ = std::move(why);
}

size_t HttpParser::feed(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size() && state_ != State::complete && state_ != State::refused) {
    begun_ = true;
    if (state_ == State::body || state_ == State::chunk_data)
      add_body(bytes, at);
    else if (read_line(bytes, at))
      on_line();
  }
  bytes_ += static_cast<int64_t>(at);
  return at;
}

bool HttpParser::read_line(std::string_view bytes, size_t& at) {
  const size_t end = bytes.find('\n', at);
  const size_t count = (end == bytes.npos ? bytes.size() : end + 1) - at;
  header_bytes_ += static_cast<int64_t>(count);
  if (header_bytes_ > limits_.header_bytes) {
    refuse(431, cat("the header lines of a request may have at most ", limits_.header_bytes, " bytes"));
    return false;
  }
  line_.append(bytes.substr(at, count));
  at += count;
  if (end == bytes.npos) return false;
  if (line_.size() < 2 || line_[line_.size() - 2] != '\r' || line_.find('\0') != line_.npos) {
    refuse(400, "a header line does not end in CR LF, or contains a zero byte");
    return false;
  }
  line_.resize(line_.size() - 2);
  return true;
}

void HttpParser::on_line() {
  switch (state_) {
    case State::request_line:
      if (line_.empty()) break;  // empty lines between requests are ignored
      on_request_line();
      break;
    case State::headers:
      line_.empty() ? on_headers_end() : on_header();
      break;
    case State::chunk_size:
      on_chunk_size();
      break;
    case State::chunk_end:
      line_.empty() ? void(state_ = State::chunk_size) : refuse(400, "a chunk is longer than its stated size");
      break;
    case State::trailers:
      if (line_.empty()) state_ = State::complete;
      break;
    default:
      break;
  }
  line_.clear();
}

void HttpParser::on_request_line() {
  const size_t first = line_.find(' '), second = line_.find(' ', first + 1);
  if (first == line_.npos || second == line_.npos || line_.find(' ', second + 1) != line_.npos || first == 0 ||
      second == first + 1 || !std::all_of(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(first), is_token))
    return refuse(400, "the first line is not an HTTP/1.1 request");
  request_.method = line_.substr(0, first);
  request_.target = line_.substr(first + 1, second - first - 1);
  const std::string_view protocol = std::string_view(line_).substr(second + 1);
  if (protocol != "HTTP/1.1" && protocol != "HTTP/1.0")
    return protocol.starts_with("HTTP/") ? refuse(505, "the service supports only HTTP/1.1")
                                         : refuse(400, "the first line is not an HTTP/1.1 request");
  http_1_0_ = protocol == "HTTP/1.0";
  state_ = State::headers;
}

void HttpParser::on_header() {
  const size_t colon = line_.find(':');
  if (colon == line_.npos || colon == 0 ||
      !std::all_of(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(colon), is_token))
    return refuse(400, "a header line is not of the form 'name: value'");
  if (request_.headers.size() == kMostHeaders) return refuse(431, cat("a request may have ", kMostHeaders, " headers"));
  request_.headers.emplace_back(lower(std::string_view(line_).substr(0, colon)),
                                trimmed(std::string_view(line_).substr(colon + 1)));
}

void HttpParser::on_headers_end() {
  const auto count = [&](std::string_view name) {
    return std::ranges::count(request_.headers, name,
                              [](const auto& header) { return std::string_view(header.first); });
  };
  const std::string connection = lower(request_.header("connection"));
  request_.keep_alive = http_1_0_ ? connection == "keep-alive" : connection != "close";
  const std::string coding = lower(request_.header("transfer-encoding"));
  const std::string_view length = request_.header("content-length");
  if (count("transfer-encoding") > 1 || count("content-length") > 1 || (!coding.empty() && count("content-length") > 0))
    return refuse(400, "the length of the body is stated twice");
  expects_continue_ = lower(request_.header("expect")) == "100-continue";
  if (!request_.header("expect").empty() && !expects_continue_)
    return refuse(417,
                  "the header Expect allows only "
                  "100-continue");
  if (!coding.empty()) {
    if (coding != "chunked") return refuse(501, "the transfer encoding must be chunked");
    state_ = State::chunk_size;
    return;
  }
  if (count("content-length") > 0) {
    const auto read = std::from_chars(length.data(), length.data() + length.size(), left_);
    if (read.ec != std::errc() || read.ptr != length.data() + length.size() || left_ < 0 || length[0] == '-') {
      if (read.ec != std::errc::result_out_of_range) return refuse(400, "Content-Length is not a number");
      left_ = limits_.body_bytes + 1;
    }
    if (left_ > limits_.body_bytes)
      return refuse(413, cat("the body of a request may have at most ", limits_.body_bytes, " bytes, but ", length,
                             " are announced: start the service with a larger --max-body"));
  }
  state_ = left_ > 0 ? State::body : State::complete;
}

void HttpParser::on_chunk_size() {
  const std::string_view size = trimmed(std::string_view(line_).substr(0, line_.find(';')));
  uint64_t bytes = 0;
  const auto read = std::from_chars(size.data(), size.data() + size.size(), bytes, 16);
  if (size.empty() || read.ec == std::errc::invalid_argument || read.ptr != size.data() + size.size())
    return refuse(400, "the size of a chunk is not a hexadecimal number");
  if (read.ec != std::errc() || bytes > static_cast<uint64_t>(limits_.body_bytes) ||
      static_cast<int64_t>(request_.body.size() + bytes) > limits_.body_bytes)
    return refuse(413, cat("the body of a request may have at most ", limits_.body_bytes, " bytes"));
  // the limit of header bytes excludes the line with the chunk size
  header_bytes_ = std::max<int64_t>(0, header_bytes_ - static_cast<int64_t>(line_.size()) - 4);
  left_ = static_cast<int64_t>(bytes);
  state_ = bytes == 0 ? State::trailers : State::chunk_data;
}

void HttpParser::add_body(std::string_view bytes, size_t& at) {
  const auto count = std::min(static_cast<size_t>(left_), bytes.size() - at);
  request_.body.append(bytes.substr(at, count));
  at += count;
  left_ -= static_cast<int64_t>(count);
  if (left_ == 0) state_ = state_ == State::body ? State::complete : State::chunk_end;
}

bool HttpParser::takes_continue() {
  const bool waits =
      expects_continue_ && (state_ == State::body || state_ == State::chunk_size) && request_.body.empty();
  if (waits) expects_continue_ = false;
  return waits;
}

HttpRequest HttpParser::take() {
  HttpRequest done = std::move(request_);
  *this = HttpParser(limits_);
  return done;
}

}  // namespace hctr::serve
