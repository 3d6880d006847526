// huge_ctr serve: malicious clients get errors, while other clients get scores.
#include <csignal>

#include "serve/grpc_front.h"
#include "serve/gzip_body.h"
#include "serve_fixture.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

class HostileClients : public ServeTest {};

TEST_F(HostileClients, AreRefusedOrClosedAndOthersAreServed) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.limits.body_bytes = 1 << 16;
  options.limits.connections = 6;
  options.limits.request_time = std::chrono::milliseconds(300);
  const serve::Service service(options);
  const std::string path = "/v2/models/ctr/infer", right = packed_request(samples, 0, 1);
  {
    HttpClient huge(service.http_port());
    (void)huge.send("POST " + path + " HTTP/1.1\r\nContent-Length: 2147483648\r\n\r\n");
    EXPECT_EQ(huge.receive().status, 413);
    EXPECT_TRUE(huge.closed_by_server());
    HttpClient half(service.http_port()), slow(service.http_port());
    (void)half.send("POST " + path + " HTTP/1.1\r\nContent-Length: 100\r\n\r\n{\"inputs\"");
    (void)slow.send("POST " + path + " HT");
    HttpClient other(service.http_port());
    EXPECT_EQ(other.post(path, right).status, 200) << "while others are slow";
    EXPECT_EQ(half.receive().status, 408);
    EXPECT_EQ(slow.receive().status, 408);
    EXPECT_TRUE(slow.closed_by_server());
  }
  HttpClient client(service.http_port());
  const auto dense = [&](const std::string& shape, const std::string& data) {
    std::string request = right;
    const size_t from = request.find("\"shape\":") + 8, to = request.find("]}", from);
    return request.replace(from, to - from, cat(shape, ",\"data\":", data.substr(0, data.size() - 1)));
  };
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {dense("[1,3]", "[1,2,3]"), "input 'dense' has shape [1,3]; expected [-1,4]"},
      {dense("[2,4]", "[1,2,3,4,5,6,7,8]"), "samples"},
      {with_change(right, "\"wide_data\"", "\"other\""), "unexpected inference input 'other'"},
      {with_change(right, "FP32", "INT32"), "which is not a value of type INT32"},
      {"{", "not valid JSON"},
      {"", "not valid JSON"},
      {R"({"inputs":[]})", "expected"},
      {with_change(right, "{\"inputs\"", R"({"outputs":[{"name":"other"}],"inputs")"),
       "unexpected inference output 'other'"},
      {with_change(right, "{\"inputs\"", R"({"parameters":{"timeout":"soon"},"inputs")"), "parameter 'timeout'"},
  };
  for (const auto& [request, message] : wrong) {
    const HttpAnswer answer = client.post(path, request);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_NE(answer.body.find(message), std::string::npos) << answer.body;
  }
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += cat(i == 0 ? "" : ",", i);
  const size_t slots = static_cast<size_t>(samples.inputs[1].slots);
  SampleArrays thousand = read_sample_arrays(load_config("one.json", false, Log::silent()),
                                             evaluation_source(load_config("one.json", false, Log::silent()).data), 1);
  thousand.inputs[1].keys.assign(1000, 7);
  thousand.inputs[1].offsets.assign(slots + 1, 1000);
  thousand.inputs[1].offsets[0] = 0;
  const HttpAnswer keys = client.post(path, packed_request(thousand, 0, 1));
  EXPECT_EQ(keys.status, 400);
  EXPECT_NE(keys.body.find("has 1000 keys, but the model accepts at most 2"), std::string::npos) << keys.body;
  EXPECT_EQ(client.post("/v2/models/zz/infer", right).status, 404);
  EXPECT_EQ(client.post("/v2/models/ctr/versions/9/infer", right).status, 404);
  EXPECT_EQ(client.get("/v3").status, 404);
  EXPECT_EQ(client.ask("DELETE", path).status, 405);
  // The first request has an expired timeout; the next ones exceed a queue of length zero.
  const HttpAnswer late =
      client.post(path, with_change(right, "{\"inputs\"", R"({"parameters":{"timeout":1},"inputs")"));
  EXPECT_EQ(late.status, 504) << late.body;
  std::vector<std::unique_ptr<HttpClient>> held;
  for (int i = 0; i < 5; ++i) {
    held.push_back(std::make_unique<HttpClient>(service.http_port()));
    EXPECT_EQ(held.back()->get("/v2/health/live").status, 200);
  }
  const HttpAnswer full = HttpClient(service.http_port()).receive();
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(full.headers.at("retry-after"), "1");
  EXPECT_EQ(scores_in(client.post(path, right).body).size(), 1u);
}

/// Without a bound, incomplete requests of many clients could take --max-connections times --max-body of memory.
TEST_F(HostileClients, GetABoundedAmountOfMemoryTogether) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.limits.body_bytes = 1 << 16;  // 64 KiB per request; all requests together may have 16 times that, 1 MiB
  const serve::Service service(options);
  const std::string path = "/v2/models/ctr/infer", right = packed_request(samples, 0, 1);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int c = 0; c < 20; ++c) {
    clients.push_back(std::make_unique<HttpClient>(service.http_port()));
    (void)clients.back()->send(
        cat("POST ", path, " HTTP/1.1\r\nContent-Length: 65536\r\n\r\n", std::string(60000, ' ')));
  }
  HttpClient other(service.http_port());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto refused = [&] {
    return std::ranges::any_of(clients, [](const auto& client) { return client->has_bytes(); });
  };
  while (!refused() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(other.post(path, right).status, 200) << "small requests are served";
  std::map<int, int> by_status;
  for (const auto& client : clients) {
    (void)client->send(std::string(5536, ' '));
    ++by_status[client->receive().status];
  }
  EXPECT_GE(by_status[400], 10) << "spaces are no request";
  EXPECT_GE(by_status[503], 1);
  const std::string large = cat(right, std::string(50000, ' '));
  EXPECT_EQ(HttpClient(service.http_port()).post(path, large).status, 200) << "the memory is free again";
}

/// gRPC's server stops for good when it cannot accept a connection for lack of descriptors.
TEST_F(HostileClients, ThatTakeAllConnectionsLeaveDescriptorsForGrpc) {
  train(config_, {"[0]"}, "one");
  const Started server = start_program(
      "/bin/sh",
      {"-c", cat("ulimit -n 200 && exec ", (bin_dir() / "huge_ctr").string(),
                 " serve ctr=one-run --http-port 0 --grpc-port 0 --metrics-port -1 --device cpu --threads 1")},
      folder_.path(), {}, "server");
  wait_for_text(server.err, "\nready\n");
  const std::string log = read_file(server.err);
  const auto port_after = [&](const char* word) {
    const size_t at = log.find(word);
    return at == log.npos ? 0 : std::atoi(log.c_str() + log.find("127.0.0.1:", at) + 10);
  };
  const int http = port_after("\nHTTP: "), grpc = port_after("\ngRPC: ");
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int c = 0; c < 300; ++c) clients.push_back(std::make_unique<HttpClient>(http));
  const HttpAnswer refused = clients.back()->receive();
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("file descriptors"), std::string::npos) << refused.body;
  EXPECT_EQ(clients[0]->get("/v2/health/ready").status, 200);
  if (grpc > 0 && serve::why_no_grpc().empty()) {
    const auto client = serve::connect_grpc(cat("127.0.0.1:", grpc));
    EXPECT_EQ(serve::call_grpc(*client, "/inference.GRPCInferenceService/ServerLive", "", 60'000'000).status, 0);
  }
  clients.clear();
  ::kill(server.process, SIGTERM);
  EXPECT_EQ(finish_program(server).exit_code, 0);
}

TEST_F(HostileClients, WhoReadNoAnswersCannotSendFurtherRequests) {
  train(config_, {"[0]"}, "one");
  const serve::Service service(options_for({"ctr=one-run"}));
  HttpClient deaf(service.http_port());
  std::string requests;
  while (requests.size() < 1 << 20) requests += "GET /v2/models/ctr/config HTTP/1.1\r\n\r\n";
  const auto begin = std::chrono::steady_clock::now();
  auto accepted = begin;
  size_t at = 0;
  const auto stopped = [&] { return std::chrono::steady_clock::now() - accepted > std::chrono::seconds(2); };
  while (!stopped() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(40)) {
    const size_t count = deaf.send_now(requests.substr(at));
    at = (at + count) % requests.size();
    if (count > 0) accepted = std::chrono::steady_clock::now();
    if (count == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(stopped()) << "the service still reads requests";
  EXPECT_EQ(HttpClient(service.http_port()).get("/v2/health/live").status, 200);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(deaf.receive().status, 200) << "the answers in order, once they are read";
}

/// A small compressed request can have large inputs.
TEST_F(HostileClients, GetABoundedAmountOfMemoryForInputsThatWait) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.limits.body_bytes = 1 << 16;
  options.schedule.delay = std::chrono::seconds(2);
  options.instances = 1;
  const serve::Service service(options);
  constexpr int64_t kRows = 1800;  // 57,600 bytes of zeros
  std::string inputs, tail;
  const auto add = [&](const std::string& name, const std::string& type, const std::string& shape, int64_t bytes) {
    inputs += cat(inputs.empty() ? "" : ",", "{\"name\":\"", name, "\",\"datatype\":\"", type, "\",\"shape\":", shape,
                  ",\"parameters\":{\"binary_data_size\":", bytes, "}}");
    tail.append(static_cast<size_t>(bytes), '\0');
  };
  add(samples.dense_name, "FP32", cat("[", kRows, ",4]"), kRows * 16);
  for (const SampleArrays::Keys& keys : samples.inputs) {
    add(keys.name, "INT64", "[0]", 0);
    add(keys.name + ".counts", "INT32", cat("[", kRows, ",", keys.slots, "]"), kRows * keys.slots * 4);
  }
  const std::string head = cat("{\"inputs\":[", inputs, "]}"), body = serve::gzip_packed(head + tail);
  ASSERT_LT(body.size(), 2000u);
  const std::string request =
      cat("POST /v2/models/ctr/infer HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: ", body.size(),
          "\r\nInference-Header-Content-Length: ", head.size(), "\r\n\r\n", body);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int c = 0; c < 60; ++c) {
    clients.push_back(std::make_unique<HttpClient>(service.http_port()));
    ASSERT_TRUE(clients.back()->send(request));
  }
  std::map<int, int> by_status;
  for (const auto& client : clients) {
    const HttpAnswer answer = client->receive();
    ++by_status[answer.status];
    if (answer.status != 200) {
      EXPECT_EQ(answer.headers.at("retry-after"), "1") << answer.body;
    }
  }
  EXPECT_GE(by_status[200], 10);
  EXPECT_GE(by_status[503], 10);
  EXPECT_EQ(by_status[200] + by_status[503], 60);
  ASSERT_TRUE(clients[0]->send(request));
  EXPECT_EQ(clients[0]->receive().status, 200) << "retried later";
}

TEST_F(HostileClients, AreAskedToComeAgainWhereTheQueueIsFull) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.schedule.most_queued = 0;
  const serve::Service service(options);
  const HttpAnswer answer = HttpClient(service.http_port()).post("/v2/models/ctr/infer", packed_request(samples, 0, 1));
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  const std::string metrics = HttpClient(service.metrics_port()).get("/metrics").body;
  EXPECT_NE(metrics.find("nv_inference_request_failure{model=\"ctr\",version=\"20\",reason=\"REJECTED\"} 1\n"),
            std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("nv_inference_request_success{model=\"ctr\",version=\"20\"} 0\n"), std::string::npos)
      << metrics;
}

}  // namespace
}  // namespace hctr::test
