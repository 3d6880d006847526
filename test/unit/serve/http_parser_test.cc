#include "serve/http_parser.h"

#include <gtest/gtest.h>

namespace hctr::serve {
namespace {

HttpLimits small_limits() {
  HttpLimits limits;
  limits.header_bytes = 256;
  limits.body_bytes = 100;
  return limits;
}

/// Feeds the bytes to a parser in parts of `part` bytes.
HttpParser fed(const std::string& bytes, size_t part = 1 << 20) {
  HttpParser parser(small_limits());
  for (size_t at = 0; at < bytes.size() && !parser.complete() && parser.refused() == 0; at += part)
    (void)parser.feed(std::string_view(bytes).substr(at, part));
  return parser;
}

TEST(HttpParser, ARequestIsTheSameInPartsOfAnySize) {
  const std::string text =
      "POST /v2/models/a/infer HTTP/1.1\r\nHost: b\r\nContent-Length:  5 \r\nX-Long: a: b\r\n\r\nhello";
  for (const size_t part : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}}) {
    HttpParser parser = fed(text, part);
    ASSERT_TRUE(parser.complete()) << "in parts of " << part << ": " << parser.why();
    const HttpRequest request = parser.take();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/v2/models/a/infer");
    EXPECT_EQ(request.body, "hello");
    EXPECT_EQ(request.header("x-long"), "a: b");
    EXPECT_TRUE(request.keep_alive);
  }
}

TEST(HttpParser, ChunksBecomeOneBody) {
  const std::string text =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  for (const size_t part : {size_t{1}, size_t{5}, size_t{1000}}) {
    HttpParser parser = fed(text, part);
    ASSERT_TRUE(parser.complete()) << parser.why();
    EXPECT_EQ(parser.take().body, "abc0123456789");
  }
}

TEST(HttpParser, TheNextRequestBeginsBehindTheFirst) {
  HttpParser parser(small_limits());
  const std::string two = "GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.0\r\n\r\n";
  const size_t first = parser.feed(two);
  EXPECT_EQ(first, two.size() / 2);
  EXPECT_EQ(parser.take().target, "/a");
  EXPECT_FALSE(parser.begun());
  (void)parser.feed(std::string_view(two).substr(first));
  ASSERT_TRUE(parser.complete());
  const HttpRequest second = parser.take();
  EXPECT_EQ(second.target, "/b");
  EXPECT_FALSE(second.keep_alive) << "HTTP/1.0 closes unless it says otherwise";
}

TEST(HttpParser, ALargeBodyIsRefusedBeforeItComes) {
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nContent-Length: 2147483648\r\n\r\n").refused(), 413);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n").refused(), 413);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n").refused(), 413);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n").refused(), 413);
  HttpParser waits = fed("POST / HTTP/1.1\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(waits.refused(), 413);
  EXPECT_FALSE(waits.takes_continue());
}

TEST(HttpParser, ContinueIsSaidOnce) {
  HttpParser parser = fed("POST / HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(parser.takes_continue());
  EXPECT_FALSE(parser.takes_continue());
  (void)parser.feed("abc");
  EXPECT_TRUE(parser.complete());
}

TEST(HttpParser, WhatTwoServersCouldReadInTwoWaysIsRefused) {
  const std::string end = "\r\n\r\n";
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4" + end).refused(), 400);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked" + end).refused(), 400);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked" + end).refused(), 501);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nContent-Length: +3" + end).refused(), 400);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nContent-Length: 3x" + end).refused(), 400);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\nContent-Length : 3" + end).refused(), 400);
  EXPECT_EQ(fed("POST / HTTP/1.1\r\n folded: 3" + end).refused(), 400);
  EXPECT_EQ(fed("POST / HTTP/1.1\nContent-Length: 3\n\n").refused(), 400);
  EXPECT_EQ(fed("GET  / HTTP/1.1" + end).refused(), 400);
  EXPECT_EQ(fed("GET / HTTP/2.0" + end).refused(), 505);
  EXPECT_EQ(fed("\x16\x03\x01\r\n").refused(), 400);
  EXPECT_EQ(fed("GET / HTTP/1.1\r\nA: " + std::string(300, 'a')).refused(), 431);
}

}  // namespace
}  // namespace hctr::serve
