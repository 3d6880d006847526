// An HTTP/2 client that calls a gRPC method and controls when it reads, for tests.
#pragma once

#include <cstdint>
#include <string>

namespace hctr::test {

/// One connection with one stream. The client acknowledges settings and pings, and obeys the server's flow control, but
/// lets the server send answers only up to the initial window.
class Http2Client {
 public:
  Http2Client(int port, const std::string& path);
  ~Http2Client();
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  /// Sends a gRPC message. Returns false, without sending, if the server accepts no message of this size now.
  bool send_message(const std::string& message);
  /// Reads the frames that have arrived.
  void read_frames();
  /// Bytes of answers that have arrived.
  int64_t received() const { return received_; }

 private:
  void send_frame(uint8_t kind, uint8_t flags, uint32_t stream, const std::string& payload) const;
  void on_frame(uint8_t kind, uint8_t flags, uint32_t stream, const std::string& payload);

  int socket_ = -1;
  int64_t connection_window_ = 65535, stream_window_ = 65535, initial_window_ = 65535, received_ = 0;
  std::string rest_;
};

}  // namespace hctr::test
