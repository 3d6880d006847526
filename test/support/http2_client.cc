#include "support/http2_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace hctr::test {
namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kSettings = 4, kPing = 6, kWindowUpdate = 8, kAck = 1, kEndHeaders = 4;
constexpr uint32_t kOwnStream = 1;
constexpr size_t kFrameHead = 9;
constexpr uint32_t kInitialWindow = 4;  // the number of this setting

std::string big_endian(uint64_t number, int bytes) {
  std::string text;
  for (int b = bytes - 1; b >= 0; --b) text += static_cast<char>(number >> (8 * b));
  return text;
}

uint32_t number_in(const std::string& text, size_t at, size_t bytes) {
  uint32_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<uint8_t>(text[at + i]);
  return number;
}

/// A header field without compression.
std::string field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}

}  // namespace

Http2Client::Http2Client(int port, const std::string& path) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{60, 0};
  (void)::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0)
    ADD_FAILURE() << "no server at port " << port;
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  EXPECT_EQ(::send(socket_, preface.data(), preface.size(), MSG_NOSIGNAL), std::ssize(preface));
  send_frame(kSettings, 0, 0, "");
  send_frame(kHeaders, kEndHeaders, kOwnStream,
             field(":method", "POST") + field(":scheme", "http") + field(":path", path) + field(":authority", "a") +
                 field("content-type", "application/grpc") + field("te", "trailers"));
}

Http2Client::~Http2Client() { ::close(socket_); }

void Http2Client::send_frame(uint8_t kind, uint8_t flags, uint32_t stream, const std::string& payload) const {
  const std::string frame = big_endian(payload.size(), 3) + static_cast<char>(kind) + static_cast<char>(flags) +
                            big_endian(stream, 4) + payload;
  EXPECT_EQ(::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL), std::ssize(frame));
}

bool Http2Client::send_message(const std::string& message) {
  const std::string data = std::string(1, '\0') + big_endian(message.size(), 4) + message;
  if (std::ssize(data) > std::min(connection_window_, stream_window_)) return false;
  send_frame(kData, 0, kOwnStream, data);
  connection_window_ -= std::ssize(data);
  stream_window_ -= std::ssize(data);
  return true;
}

void Http2Client::read_frames() {
  char part[1 << 14];
  for (ssize_t count; (count = ::recv(socket_, part, sizeof part, MSG_DONTWAIT)) > 0;)
    rest_.append(part, static_cast<size_t>(count));
  while (rest_.size() >= kFrameHead) {
    const size_t size = number_in(rest_, 0, 3);
    if (rest_.size() < kFrameHead + size) return;
    on_frame(static_cast<uint8_t>(rest_[3]), static_cast<uint8_t>(rest_[4]), number_in(rest_, 5, 4),
             rest_.substr(kFrameHead, size));
    rest_.erase(0, kFrameHead + size);
  }
}

void Http2Client::on_frame(uint8_t kind, uint8_t flags, uint32_t stream, const std::string& payload) {
  if (kind == kData) received_ += std::ssize(payload);
  if (kind == kPing && (flags & kAck) == 0) send_frame(kPing, kAck, 0, payload);
  if (kind == kWindowUpdate) (stream == 0 ? connection_window_ : stream_window_) += number_in(payload, 0, 4);
  if (kind != kSettings || (flags & kAck) != 0) return;
  for (size_t at = 0; at + 6 <= payload.size(); at += 6) {
    if (number_in(payload, at, 2) != kInitialWindow) continue;
    stream_window_ += int64_t{number_in(payload, at + 2, 4)} - initial_window_;
    initial_window_ = number_in(payload, at + 2, 4);
  }
  send_frame(kSettings, kAck, 0, "");
}

}  // namespace hctr::test
