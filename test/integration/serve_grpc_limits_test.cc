// huge_ctr serve: clients by gRPC that take more than their share.
#include <csignal>

#include "core/base/proto_wire.h"
#include "serve/grpc_front.h"
#include "serve/proto_reader.h"
#include "serve_fixture.h"
#include "support/http2_client.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

class GrpcLimits : public ServeTest {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "gRPC is not built with sanitizers";
    if (const std::string why = serve::why_no_grpc(); !why.empty()) GTEST_SKIP() << why;
    ServeTest::SetUp();
    train(config_, {"[0]"}, "one");
  }
  /// Whether a new connection is served. A refused client tries again until its deadline.
  static bool answers(int port, int64_t timeout_us = 60'000'000) {
    const auto client = serve::connect_grpc(cat("127.0.0.1:", port));
    return serve::call_grpc(*client, "/inference.GRPCInferenceService/ServerLive", "", timeout_us).status == 0;
  }
  static bool comes_true(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }
};

TEST_F(GrpcLimits, ConnectionsAboveTheMaximumAreClosedUntilOthersEnd) {
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.limits.connections = 3;
  const serve::Service service(options);
  const int port = service.grpc_port();
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int c = 0; c < 3; ++c) silent.push_back(std::make_unique<HttpClient>(port));
  for (int c = 0; c < 5; ++c) EXPECT_TRUE(HttpClient(port).closed_by_server()) << "the fourth";
  EXPECT_FALSE(answers(port, 300'000));
  EXPECT_EQ(HttpClient(service.http_port()).get("/v2/health/live").status, 200) << "HTTP has its own maximum";
  silent.pop_back();
  EXPECT_TRUE(comes_true([&] { return answers(port, 1'000'000); }));
  // A service that lost count of ended connections would refuse here.
  for (int c = 0; c < 50; ++c) ASSERT_TRUE(comes_true([&] { return answers(port, 1'000'000); })) << c;
}

TEST_F(GrpcLimits, MoreConnectionsThanDescriptorsDoNotEndTheServer) {
  const Started server = start_program(
      "/bin/sh",
      {"-c", cat("ulimit -n 200 && exec ", (bin_dir() / "huge_ctr").string(),
                 " serve ctr=one-run --http-port 0 --grpc-port 0 --metrics-port -1 --device cpu --threads 1")},
      folder_.path(), {}, "server");
  wait_for_text(server.err, "\nready\n");
  const std::string log = read_file(server.err);
  const size_t at = log.find("127.0.0.1:", log.find("\ngRPC: "));
  ASSERT_NE(at, log.npos) << log;
  const int port = std::atoi(log.c_str() + at + 10);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int c = 0; c < 400; ++c) clients.push_back(std::make_unique<HttpClient>(port));
  EXPECT_TRUE(clients.back()->closed_by_server());
  clients.clear();
  EXPECT_TRUE(comes_true([&] { return answers(port, 1'000'000); }));
  ::kill(server.process, SIGTERM);
  EXPECT_EQ(finish_program(server).exit_code, 0);
}

/// Without a bound, answers to a client that sends requests but never reads would fill the memory.
TEST_F(GrpcLimits, AStreamWhoseClientNeverReadsIsReadNoFurther) {
  const serve::Service service(options_for({"ctr=one-run"}));
  const auto count_of = [&](const std::string& what) {
    const std::string page = HttpClient(service.metrics_port()).get("/metrics").body;
    const size_t at = page.find("\n" + what + "{model=\"ctr\",version=\"20\"");
    return at == page.npos ? -1 : std::atoi(page.c_str() + page.find("} ", at) + 2);
  };
  const SampleArrays samples = samples_of("one.json");
  using serve::append_bytes_field;
  std::string request, raw;
  append_bytes_field(request, 1, "ctr");
  const auto add = [&](const std::string& input, const std::string& type, std::vector<uint64_t> shape,
                       const auto& values) {
    std::string sizes, one;
    for (const uint64_t size : shape) append_varint(sizes, size);
    append_bytes_field(one, 1, input);
    append_bytes_field(one, 2, type);
    append_bytes_field(one, 3, sizes);
    append_bytes_field(request, 5, one);
    append_bytes_field(raw, 7, bytes_of(values));
  };
  add(samples.dense_name, "FP32", {1, 4}, std::vector<float>(4));
  for (const SampleArrays::Keys& keys : samples.inputs) {
    add(keys.name, "INT64", {0}, std::vector<int64_t>());
    add(keys.name + ".counts", "INT32", {1, static_cast<uint64_t>(keys.slots)},
        std::vector<int32_t>(static_cast<size_t>(keys.slots)));
  }
  request += raw;
  Http2Client deaf(service.grpc_port(), "/inference.GRPCInferenceService/ModelStreamInfer");
  constexpr int kMost = 100'000;
  int sent = 0;
  const auto begin = std::chrono::steady_clock::now();
  auto accepted = begin;
  const auto stopped = [&] { return std::chrono::steady_clock::now() - accepted > std::chrono::seconds(2); };
  while (sent < kMost && !stopped() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(60)) {
    if (deaf.send_message(request)) {
      ++sent;
      accepted = std::chrono::steady_clock::now();
    } else {
      deaf.read_frames();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  EXPECT_TRUE(stopped()) << "the service still reads, after " << sent << " requests";
  EXPECT_GT(deaf.received(), 1000) << "answers to the first requests";
  EXPECT_LE(deaf.received(), 65535);
  // The service answers requests until their answers, of more than 40 bytes each, fill the window of 65,535 bytes, and
  // 64 more answers wait in the service.
  const int answered = count_of("nv_inference_request_success");
  EXPECT_GT(answered, 64);
  EXPECT_LE(answered, 65535 / 40 + 66);
  EXPECT_LT(answered, sent) << "the rest is not read";
  EXPECT_TRUE(answers(service.grpc_port())) << "others are served";
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(count_of("nv_inference_request_success"), answered);
}

}  // namespace
}  // namespace hctr::test
