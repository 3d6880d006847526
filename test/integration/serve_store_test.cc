// huge_ctr serve --store: tables of a store, which change while the service runs.
#include <chrono>

#include "infer/store_models.h"
#include "score/feature_names.h"
#include "serve_fixture.h"
#include "store/table_sources.h"
#include "support/message_of.h"
#include "support/mock_kafka.h"
#include "support/redis_servers.h"

namespace hctr::test {
namespace {

class ServedFromAStore : public ServeTest {
 protected:
  void SetUp() override {
    ServeTest::SetUp();
    train(with_batch_norm(config_), {"[0]"}, "one");
    samples_ = samples_of("one.json");
  }
  serve::ServeOptions options_with(const std::string& store) {
    write_file("store.json", store);
    serve::ServeOptions options = options_for({"ctr=one-run"});
    options.store = "store.json";
    options.grpc_port = -1;
    return options;
  }
  std::vector<float> served(const serve::Service& service) const {
    HttpClient client(service.http_port());
    const auto count = static_cast<size_t>(samples_.samples);
    return scores_in(client.post("/v2/models/ctr/infer", packed_request(samples_, 0, count)).body);
  }
  static std::string metric(const serve::Service& service, const std::string& name) {
    HttpClient client(service.metrics_port());
    const std::string page = client.get("/metrics").body;
    const size_t at = page.find("\n" + name + "{");
    if (at == page.npos) return "none";
    const size_t space = page.find("} ", at);
    return page.substr(space + 2, page.find('\n', space) - space - 2);
  }
  SampleArrays samples_;
};

TEST_F(ServedFromAStore, ScoresAreThoseOfTheModelWithItsOwnTables) {
  const serve::Service service(options_with(R"({"models": [{"name": "ctr", "model": "one-run"}]})"));
  EXPECT_EQ(served(service), predicted("one-run"));
  EXPECT_EQ(metric(service, "hctr_store_active"), "1");
  EXPECT_NE(metric(service, "hctr_store_level_hits"), "0");
  EXPECT_EQ(metric(service, "hctr_stream_deltas"), "none");
}

TEST_F(ServedFromAStore, OnAGpuRowsAreReadThroughTheCache) {
  serve::ServeOptions options = options_with(
      R"({"gpu_cache": {"most_rows": 30, "admit_after": 1}, "models": [{"name": "ctr", "model": "one-run"}]})");
  {
    const serve::Service on_cpu(options);
    EXPECT_EQ(metric(on_cpu, "hctr_gpu_cache_keys"), "none");
  }
  HCTR_SKIP_WITHOUT_GPU();
  options.device = DeviceChoice::cuda;
  const serve::Service cached(options);
  const std::vector<float> scores = served(cached);
  EXPECT_NE(metric(cached, "hctr_gpu_cache_keys"), "0");
  EXPECT_NE(metric(cached, "hctr_gpu_cache_misses"), "0");
  options.store.clear();
  const serve::Service own(options);
  EXPECT_EQ(served(own), scores);
}

TEST_F(ServedFromAStore, UnseenKeysAreCountedBySlotAsWithOwnTables) {
  constexpr int64_t kUnseen = 1'000'000'007;
  SampleArrays changed = samples_;
  SampleArrays::Keys& keys = changed.inputs[0];
  int64_t of_slot_0 = 0;
  for (int64_t sample = 0; sample < changed.samples; ++sample)
    for (int64_t k = keys.offsets[static_cast<size_t>(sample * keys.slots)];
         k < keys.offsets[static_cast<size_t>(sample * keys.slots + 1)]; ++k, ++of_slot_0)
      keys.keys[static_cast<size_t>(k)] = kUnseen;
  ASSERT_GT(of_slot_0, 0);
  std::vector<std::string> pages;
  for (const bool with_store : {false, true}) {
    serve::ServeOptions options = options_with(R"({"models": [{"name": "ctr", "model": "one-run"}]})");
    if (!with_store) options.store.clear();
    const serve::Service service(options);
    HttpClient client(service.http_port()), metrics(service.metrics_port());
    const std::string request = packed_request(changed, 0, static_cast<size_t>(changed.samples));
    ASSERT_EQ(client.post("/v2/models/ctr/infer", request).status, 200);
    std::string lines;
    std::istringstream page(metrics.get("/metrics").body);
    for (std::string line; std::getline(page, line);)
      if (line.starts_with("hctr_sampled_keys{") || line.starts_with("hctr_unseen_keys{")) lines += line + "\n";
    pages.push_back(lines);
  }
  EXPECT_EQ(pages[0], pages[1]);
  const std::string label =
      cat("slot=\"", feature_names(load_config("one.json", false, Log::silent()).data).slots[0][0], "\"} ");
  EXPECT_NE(pages[0].find(cat(label, of_slot_0, "\n")), std::string::npos) << pages[0];
  const size_t unseen = pages[0].find("hctr_unseen_keys{");
  ASSERT_NE(unseen, std::string::npos);
  EXPECT_NE(pages[0].find(cat(label, of_slot_0, "\n"), unseen), std::string::npos) << pages[0];
}

TEST_F(ServedFromAStore, RowsOfAnotherRunAreAnError) {
  train(with_batch_norm(config_), {"[0]"}, "two");
  const serve::ServeOptions options = options_with(R"({"models": [{"name": "ctr", "model": "two-run"}]})");
  const std::string message = message_of(Kind::config, [&] { serve::Service{options}; });
  EXPECT_NE(message.find("load both from one run"), std::string::npos) << message;
}

/// Requests that need the lost level get status 503. Other requests are served. When the level is back, all scores are
/// right.
TEST_F(ServedFromAStore, ALevelThatStopsAnsweringCostsNothingButItsRequests) {
  if (const std::string why = why_no_redis(); !why.empty()) GTEST_SKIP() << why;
  const RedisServers redis;
  const serve::Service service(options_with(
      cat(R"({"redis": {"addresses": [")", redis.addresses().at(0),
          R"("], "timeout_ms": 200}, "memory": false, "models": [{"name": "ctr", "model": "one-run"}]})")));
  const std::vector<float> expected = predicted("one-run");
  EXPECT_EQ(served(service), expected);
  redis.pause(0);
  std::vector<std::thread> clients;
  std::atomic<int> refused = 0, wrong = 0;
  for (int c = 0; c < 4; ++c)
    clients.emplace_back([&] {
      HttpClient client(service.http_port());
      for (int i = 0; i < 3; ++i) {
        const HttpAnswer answer = client.post("/v2/models/ctr/infer", packed_request(samples_, 0, 5));
        if (answer.status == 503 && answer.headers.contains("retry-after"))
          ++refused;
        else if (answer.status != 200 ||
                 scores_in(answer.body) != std::vector<float>(expected.begin(), expected.begin() + 5))
          ++wrong;
      }
    });
  EXPECT_EQ(HttpClient(service.http_port()).get("/v2/health/ready").status, 200);
  EXPECT_EQ(HttpClient(service.http_port()).get("/v2/models/ctr").status, 200);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(refused, 1);
  redis.resume(0);
  HttpClient client(service.http_port());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  HttpAnswer answer;
  while (answer.status != 200 && std::chrono::steady_clock::now() < until)
    answer = client.post("/v2/models/ctr/infer", packed_request(samples_, 0, static_cast<size_t>(samples_.samples)));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(scores_in(answer.body), expected);
}

TEST_F(ServedFromAStore, ScoresFollowTheTopic) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"t:2"});
  const serve::Service service(
      options_with(cat(R"({"models": [{"name": "ctr", "model": "one-run", "stream": {"topic": "t", "brokers": ")",
                       kafka.brokers(), R"("}}]})")));
  EXPECT_EQ(served(service), predicted("one-run"));

  StoreModelSection section;
  section.name = "ctr";
  section.model = "one-run";
  const StoreModel source = store_model(section, {}, Log::silent());
  Store expected({});
  expected.load(source);
  const int64_t iteration = expected.models()[0].iteration;
  DeltaProducer producer(kafka.stream("t"));
  StreamedAbout about{.run = expected.run("ctr"), .iteration = iteration + 1, .base = iteration};
  for (const StoreTableSource& table : source.tables)
    about.tables.push_back({.name = table.name, .dim = table.dim, .by_slot = table.by_slot});
  producer.begin(about);
  std::vector<int64_t> keys;
  std::vector<float> rows;
  read_table(source.tables[0], [&](std::span<const int32_t>, std::span<const int64_t> key, std::span<const float> row) {
    keys.insert(keys.end(), key.begin(), key.end());
    for (const float value : row) rows.push_back(-2 * value);
  });
  ASSERT_FALSE(source.tables[0].by_slot);
  producer.rows(0, keys, rows);
  producer.end();

  const StoreTableUpdate update{.table = source.tables[0].name, .keys = keys, .rows = rows.data()};
  expected.apply("ctr", iteration + 1, {&update, 1});
  LoadOptions with_store = at("one-run");
  with_store.tables = std::make_shared<StoreView>(expected.view("ctr"));
  const std::vector<float> changed = score_in(Model(with_store), samples_, {4096});
  ASSERT_NE(changed, predicted("one-run"));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (metric(service, "hctr_stream_deltas") != "1" && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(metric(service, "hctr_stream_deltas"), "1");
  EXPECT_EQ(metric(service, "hctr_store_iteration"), std::to_string(iteration + 1));
  EXPECT_EQ(served(service), changed);
}

}  // namespace
}  // namespace hctr::test
