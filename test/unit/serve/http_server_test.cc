// The limits of the HTTP server: connections, memory and time.
#include "serve/http_server.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/http_client.h"

namespace hctr::test {
namespace {

using std::chrono::milliseconds;
using Clients = std::vector<std::unique_ptr<HttpClient>>;

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kLargeAnswer = 12 * kMiB;  // more bytes than the socket buffers of both sides hold

/// Answers a request for /large with 12 MiB, and any other request with the size of its body.
void answer(const serve::HttpRequest& request, const serve::Respond& respond) {
  serve::HttpResponse response;
  response.body = request.target == "/large" ? std::string(kLargeAnswer, 'x') : std::to_string(request.body.size());
  respond(std::move(response));
}

std::unique_ptr<serve::HttpServer> start(const serve::HttpLimits& limits, int threads = 1) {
  return std::make_unique<serve::HttpServer>("127.0.0.1", 0, threads, limits, answer);
}

bool comes_true(const std::function<bool()>& condition, int limit = 20) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(limit);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

std::string post_head(int64_t bytes) {
  return "POST / HTTP/1.1\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
}

TEST(HttpServer, AClientAboveTheMaximumReadsTheRefusalWhateverItSends) {
  serve::HttpLimits limits;
  limits.connections = 1;
  const auto server = start(limits, 2);
  HttpClient first(server->port());
  EXPECT_EQ(first.get("/").status, 200);
  for (int i = 0; i < 100; ++i) {
    HttpClient client(server->port());
    // The refusal may arrive before, while or after the client sends its request.
    if (i % 2 == 0) std::this_thread::sleep_for(milliseconds(5));
    // The client must be able to send its whole request. A reset connection would prevent this.
    const int64_t bytes = i * 5000;
    ASSERT_TRUE(client.send(post_head(bytes))) << "reset: " << i;
    if (i % 5 == 0) std::this_thread::sleep_for(milliseconds(5));
    ASSERT_TRUE(client.send(std::string(static_cast<size_t>(bytes), 'x'))) << "reset: " << i;
    const HttpAnswer refused = client.receive();
    ASSERT_EQ(refused.status, 503) << i;
    EXPECT_EQ(refused.headers.at("retry-after"), "1");
    EXPECT_NE(refused.body.find("1 connections, its maximum"), std::string::npos) << refused.body;
    EXPECT_TRUE(client.closed_by_server());
  }
  EXPECT_EQ(server->connections(), 1) << "refused connections do not count";
  EXPECT_EQ(first.get("/").status, 200);
  Clients silent;  // more refused clients than the server keeps open at a time
  for (int i = 0; i < 700; ++i) silent.push_back(std::make_unique<HttpClient>(server->port()));
  for (const auto& client : silent) ASSERT_EQ(client->receive().status, 503);
  EXPECT_EQ(first.get("/").status, 200);
}

TEST(HttpServer, ARefusedUploadReadsTheRefusal) {
  serve::HttpLimits limits;
  limits.body_bytes = 1000;
  const auto server = start(limits);
  for (int i = 0; i < 20; ++i) {
    HttpClient client(server->port());
    EXPECT_TRUE(client.send(post_head(3 * kMiB))) << "reset: " << i;
    std::this_thread::sleep_for(milliseconds(5));
    EXPECT_TRUE(client.send(std::string(3 * kMiB, 'x'))) << "reset: " << i;
    EXPECT_EQ(client.receive().status, 413);
  }
}

TEST(HttpServer, StalledUploadsFreeTheirMemoryAfterTheTimeLimit) {
  serve::HttpLimits limits;
  limits.body_bytes = kMiB;  // all requests together: 16 times this size, 16 MiB
  limits.request_time = milliseconds(1500);
  const auto server = start(limits);
  Clients stalled;
  for (int i = 0; i < 20; ++i) {  // the last five exceed 16 MiB and get 503
    stalled.push_back(std::make_unique<HttpClient>(server->port()));
    (void)stalled.back()->send(post_head(kMiB) + std::string(kMiB - 1, 'x'));
  }
  const std::string large(kMiB, 'x');
  const auto status_of_large = [&] { return HttpClient(server->port()).post("/", large).status; };
  EXPECT_TRUE(comes_true([&] { return status_of_large() == 503; }));
  EXPECT_EQ(HttpClient(server->port()).post("/", "small").status, 200);
  // comes_true() waits 20 s. If the time limit grew with the size of a request, the stalled requests would last a
  // minute.
  EXPECT_TRUE(comes_true([&] { return status_of_large() == 200; }));
  std::map<int, int> by_status;
  for (const auto& client : stalled) ++by_status[client->receive().status];
  EXPECT_EQ(by_status[408], 15);
  EXPECT_EQ(by_status[503], 5);
}

TEST(HttpServer, ASlowUploadThatGoesOnIsNotCut) {
  serve::HttpLimits limits;
  limits.request_time = milliseconds(1500);
  const auto server = start(limits);
  HttpClient client(server->port());
  constexpr int64_t kPart = 600 << 10, kParts = 6;
  ASSERT_TRUE(client.send(post_head(kPart * kParts)));
  for (int i = 0; i < kParts; ++i) {
    std::this_thread::sleep_for(milliseconds(500));
    ASSERT_TRUE(client.send(std::string(kPart, 'x')));
  }
  EXPECT_EQ(client.receive().body, std::to_string(kPart * kParts));
}

TEST(HttpServer, AnswersThatClientsDoNotReadCountAndTimeOut) {
  serve::HttpLimits limits;
  // All answers together may have 16 times this size, 16 MiB. The second answer is still accepted, because the first
  // has 12 MiB.
  limits.body_bytes = kMiB;
  limits.write_time = milliseconds(1500);
  const auto server = start(limits);
  Clients deaf;
  for (int i = 0; i < 2; ++i) {
    deaf.push_back(std::make_unique<HttpClient>(server->port()));
    ASSERT_TRUE(deaf.back()->send("GET /large HTTP/1.1\r\n\r\n"));
    EXPECT_TRUE(comes_true([&] { return deaf.back()->has_bytes(); }));
  }
  HttpClient client(server->port());
  const HttpAnswer refused = client.get("/large");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  EXPECT_NE(refused.body.find("answers that clients have not read"), std::string::npos) << refused.body;
  EXPECT_EQ(client.get("/").status, 200) << "on the same connection";
  EXPECT_EQ(client.post("/", std::string(kMiB, 'x')).status, 503) << "requests share the memory";
  EXPECT_TRUE(comes_true([&] { return HttpClient(server->port()).get("/large").status == 200; }));
  EXPECT_TRUE(comes_true([&] { return server->connections() <= 1; })) << "both unread answers time out";
  for (const auto& one : deaf) EXPECT_EQ(one->receive().status, 0) << "the rest of the answer is dropped";
}

TEST(HttpServer, AnAnswerThatIsReadSlowlyIsNotCut) {
  serve::HttpLimits limits;
  limits.write_time = milliseconds(1500);
  const auto server = start(limits);
  HttpClient client(server->port());
  ASSERT_TRUE(client.send("GET /large HTTP/1.1\r\nConnection: close\r\n\r\n"));
  size_t read = 0;
  for (int i = 0; i < 6; ++i) {
    std::this_thread::sleep_for(milliseconds(500));
    read += client.skip(1 << 20);
  }
  EXPECT_EQ(read, 6u << 20);
  while (const size_t more = client.skip(1 << 20)) read += more;
  EXPECT_GT(read, static_cast<size_t>(kLargeAnswer));
}

}  // namespace
}  // namespace hctr::test
