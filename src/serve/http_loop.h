// A thread of an HTTP server, with its epoll loop and connections.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serve/http_message.h"
#include "serve/http_parser.h"

namespace hctr::serve {

/// Counts, summed over all threads of a server.
struct HttpTotals {
  std::atomic<int64_t> connections{0};
  std::atomic<int64_t> bytes{0};  ///< bytes of unanswered requests, and of answers that clients have not read
};

class HttpLoop {
 public:
  using Time = std::chrono::steady_clock::time_point;

  HttpLoop(int listener, const HttpLimits&, HttpHandler, std::shared_ptr<HttpTotals>);
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  /// Stops accepting connections, and closes each connection after its pending response.
  void begin_drain();
  /// Whether all connections are closed.
  bool drained() const { return own_connections_ == 0; }

 private:
  struct Connection {
    explicit Connection(const HttpLimits& limits) : parser(limits) {}
    int socket = -1;
    HttpParser parser;
    std::string input{}, output{};  // input: bytes to parse; output: bytes to send, of which the first `sent` are sent
    size_t sent = 0;
    bool busy = false, keep_alive = true, closes = false, saw_end = false;
    // Whether the connection exceeds the maximum number; if so, HttpTotals::connections excludes it.
    bool refused = false;
    bool lingers = false;  // whether the last response is sent; further bytes of the client are then discarded
    uint32_t events = 0;
    int64_t counted = 0;  // bytes of this connection in HttpTotals::bytes
    // When the timeout starts. While a request arrives or a response is sent: at its first byte, or at the last
    // progress of the transfer. While the connection is idle: at the end of the last response, or when the connection
    // was opened.
    Time since{};
    int64_t progress = 0;  // bytes of the request or response at the last progress
  };
  /// Responses of handlers, which may arrive after the loop is destroyed.
  struct Mailbox {
    std::mutex mutex;
    std::vector<std::pair<uint64_t, HttpResponse>> answers;
    int wake = -1;  // eventfd; -1: the loop is destroyed
  };

  void run();
  void accept_all();
  Connection& add(int socket);
  /// Answers a new connection with 503.
  void refuse(int socket, const std::string& why);
  void receive(Connection&);
  /// Ends a connection after its last response: waits a short time until the client has closed it.
  static void linger(Connection&);
  /// Discards bytes that a client sends after its last response. False: the connection must be closed.
  static bool discard(Connection&);
  /// Starts the timeout again if enough bytes of a request or response have been transferred.
  static void note_progress(Connection&, int64_t bytes);
  void count_bytes(Connection&, int64_t bytes);
  /// Parses `input` and handles complete requests. False: the connection must be closed.
  bool advance(uint64_t id, Connection&);
  bool answer(Connection&, const HttpResponse&);
  bool flush(Connection&);
  bool serve(uint64_t id, uint32_t events);
  void deliver_answers();
  void close_late();
  void watch(uint64_t id, Connection&);
  void close_connection(uint64_t id);

  int listener_, most_descriptor_, poll_ = -1;
  HttpLimits limits_;
  HttpHandler handler_;
  std::shared_ptr<HttpTotals> totals_;
  std::atomic<int64_t> own_connections_{0};
  std::atomic<bool> ends_ = false, drains_ = false;
  bool listens_ = true;
  std::map<uint64_t, std::unique_ptr<Connection>> open_;
  int64_t refused_ = 0;  // connections in `open_` that are refused
  uint64_t next_ = 2;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  std::thread thread_;
};

}  // namespace hctr::serve
