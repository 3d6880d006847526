// huge_ctr serve: vectors of keys, in the form of NVIDIA's HPS backend.
#include "serve/grpc_front.h"
#include "serve/proto_reader.h"
#include "serve_fixture.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr const char* kPath = "/v2/models/ctr/infer";

class ServedKeys : public ServeTest {
 protected:
  void SetUp() override {
    ServeTest::SetUp();
    config_ = with_change(config_, "\"LocalizedSlotSparseEmbeddingHash\"", "\"DistributedSlotSparseEmbeddingHash\"");
    tables_[1].by_slot = false;
  }
  static std::string key_request(const std::vector<int64_t>& keys, const std::string& numbers,
                                 const std::string& shape_of_numbers) {
    return cat("{\"inputs\":[", tensor("NUMKEYS", "INT32", shape_of_numbers, numbers), ",",
               tensor("KEYS", "INT64", cat("[1,", keys.size(), "]"), list_of(keys, 0, keys.size())), "]}");
  }
};

TEST_F(ServedKeys, HaveTheVectorsOfTheirRowsAsInNvidiasBackend) {
  const Result model = train(config_, {"[0]"}, "one");
  std::vector<int64_t> keys;
  std::vector<float> expected;
  size_t numbers[2] = {};
  for (size_t table = 0; table < 2; ++table) {
    // more keys than one pass looks up, one of them without a row
    for (int repeat = 0; repeat < 25; ++repeat)
      for (const auto& [identity, vector] : model.rows[table]) {
        keys.push_back(identity.second);
        expected.insert(expected.end(), vector.begin(), vector.end());
        ++numbers[table];
      }
    keys.push_back(1'000'000'007);
    expected.insert(expected.end(), tables_[table].dim, 0.0f);
    ++numbers[table];
  }
  ASSERT_GT(keys.size(), 5000u);
  write_file("store.json", R"({"models": [{"name": "ctr", "model": "one-run"}]})");
  for (const bool with_store : {false, true}) {
    serve::ServeOptions options = options_for({"ctr=one-run"});
    if (with_store) options.store = "store.json";
    const serve::Service service(options);
    std::vector<std::thread> clients;
    std::atomic<int> wrong = 0;
    for (int c = 0; c < 3; ++c)
      clients.emplace_back([&] {
        HttpClient client(service.http_port());
        const HttpAnswer answer =
            client.post(kPath, key_request(keys, cat("[", numbers[0], ",", numbers[1], "]"), "[1,2]"));
        if (answer.status != 200 || scores_in(answer.body) != expected) ++wrong;
        if (names_in(*Json::parse(answer.body, "answer").find("outputs")) != std::vector<std::string>{"OUTPUT0"})
          ++wrong;
      });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(wrong, 0) << (with_store ? "store" : "own tables");
    HttpClient client(service.http_port());
    const HttpAnswer none = client.post(kPath, key_request({}, "[0,0]", "[2]"));
    EXPECT_EQ(none.status, 200) << none.body;
    EXPECT_EQ(shape_in(none.body, 0), "[0]");
    const auto refusal = [&](const std::string& request) { return error_in(client.post(kPath, request)); };
    EXPECT_EQ(refusal(key_request({7, 8}, "[2]", "[1]")), "input 'NUMKEYS' has 1 elements; model 'ctr' has 2 tables");
    EXPECT_EQ(refusal(key_request({7, 8}, "[1,2]", "[2]")),
              "input 'NUMKEYS': element 1 is 2, but only 1 keys are left in 'KEYS'");
    EXPECT_EQ(refusal(key_request({7, 8}, "[-1,3]", "[2]")),
              "input 'NUMKEYS': element 0 is -1, but only 2 keys are left in 'KEYS'");
    EXPECT_EQ(refusal(key_request({7, 8}, "[1,0]", "[2]")), "input 'KEYS' has 2 keys, but 'NUMKEYS' counts 1");
    EXPECT_EQ(refusal(key_request({7, 8}, "[1,1]", "[2,1]")),
              "input 'NUMKEYS' has shape [2,1]; expected [-1] or [1,-1]");
    EXPECT_EQ(refusal(with_outputs(key_request({7}, "[1,0]", "[2]"), {"loss"})),
              "a request for vectors of 'KEYS' has the output 'OUTPUT0', not 'loss'");
    EXPECT_EQ(refusal(cat("{\"inputs\":[", tensor("KEYS", "INT64", "[1]", "[7]"), "]}")),
              "input 'NUMKEYS' is missing: a request for vectors needs 'KEYS' and 'NUMKEYS'");
  }
}

TEST_F(ServedKeys, ByGrpcHaveTheSameVectors) {
  if (kSanitized) GTEST_SKIP() << "gRPC is not built with sanitizers";
  if (const std::string why = serve::why_no_grpc(); !why.empty()) GTEST_SKIP() << why;
  const Result model = train(config_, {"[0]"}, "one");
  const serve::Service service(options_for({"ctr=one-run"}));
  std::string request;
  serve::append_bytes_field(request, 1, "ctr");
  std::vector<int64_t> keys;
  std::vector<float> expected;
  for (const auto& [identity, vector] : model.rows[1]) {
    keys.push_back(identity.second);
    expected.insert(expected.end(), vector.begin(), vector.end());
  }
  const auto add = [&](const std::string& name, const std::string& type, size_t size) {
    std::string shape, one;
    append_varint(shape, size);
    serve::append_bytes_field(one, 1, name);
    serve::append_bytes_field(one, 2, type);
    serve::append_bytes_field(one, 3, shape);
    serve::append_bytes_field(request, 5, one);
  };
  add("KEYS", "INT64", keys.size());
  add("NUMKEYS", "INT32", 2);
  serve::append_bytes_field(request, 7, bytes_of(keys));
  serve::append_bytes_field(request, 7, bytes_of(std::vector<int32_t>{0, static_cast<int32_t>(keys.size())}));
  const auto client = serve::connect_grpc(cat("127.0.0.1:", service.grpc_port()));
  const serve::GrpcAnswer answer =
      serve::call_grpc(*client, "/inference.GRPCInferenceService/ModelInfer", request, 60'000'000);
  ASSERT_EQ(answer.status, 0) << answer.message;
  std::string vectors;
  for (serve::ProtoReader field(answer.response); field.next();)
    if (field.number() == 6) vectors = field.text();
  EXPECT_EQ(vectors, bytes_of(expected));
}

TEST_F(ServedKeys, AndOutputsOnAGpuAreThoseOnTheCpu) {
  HCTR_SKIP_WITHOUT_GPU();
  const Result model = train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  std::vector<int64_t> keys = {1'000'000'007};
  for (const auto& [identity, vector] : model.rows[1]) keys.push_back(identity.second);
  std::vector<std::vector<float>> on_cpu;
  for (const DeviceChoice device : {DeviceChoice::cpu, DeviceChoice::cuda}) {
    serve::ServeOptions options = options_for({"ctr=one-run"});
    options.device = device;
    const serve::Service service(options);
    HttpClient client(service.http_port());
    const HttpAnswer outputs = client.post(
        kPath, with_outputs(packed_request(samples, 3, 50), {"loss.logits", "deep_emb", "deep_emb.2", "wide_emb"}));
    ASSERT_EQ(outputs.status, 200) << outputs.body;
    const HttpAnswer vectors = client.post(kPath, key_request(keys, cat("[0,", keys.size(), "]"), "[2]"));
    ASSERT_EQ(vectors.status, 200) << vectors.body;
    if (device == DeviceChoice::cpu) {
      for (size_t o = 0; o < 4; ++o) on_cpu.push_back(scores_in(outputs.body, o));
      on_cpu.push_back(scores_in(vectors.body));
      continue;
    }
    EXPECT_EQ(scores_in(vectors.body), on_cpu[4]);
    for (size_t o = 0; o < 4; ++o) {
      const std::vector<float> values = scores_in(outputs.body, o);
      ASSERT_EQ(values.size(), on_cpu[o].size());
      for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], on_cpu[o][i], 1e-5) << "output " << o;
    }
  }
}

TEST_F(ServedKeys, OfATableWithRowsBySlotAreRefused) {
  config_ = with_change(config_, "\"DistributedSlotSparseEmbeddingHash\", \"bottom\": \"deep_data\"",
                        "\"LocalizedSlotSparseEmbeddingHash\", \"bottom\": \"deep_data\"");
  tables_[1].by_slot = true;
  train(config_, {"[0]"}, "one");
  const serve::Service service(options_for({"ctr=one-run"}));
  HttpClient client(service.http_port());
  EXPECT_EQ(error_in(client.post(kPath, key_request({7}, "[0,1]", "[2]"))),
            "table 'deep_emb' has a row for each slot and key, so a key alone names no row: send samples, and request "
            "the output 'deep_emb'");
  EXPECT_EQ(client.post(kPath, key_request({7}, "[1,0]", "[2]")).status, 200) << "the other table";
}

TEST_F(ServedKeys, AndOutputsBeyondTheLimitOfAResponseAreRefused) {
  train(config_, {"[0]"}, "one");
  const serve::Service service(options_for({"ctr=one-run"}));
  HttpClient client(service.http_port());
  const auto binary = [](const std::string& name, const std::string& type, const std::string& shape, size_t bytes) {
    return cat("{\"name\":\"", name, "\",\"datatype\":\"", type, "\",\"shape\":", shape,
               ",\"parameters\":{\"binary_data_size\":", bytes, "}}");
  };
  const auto ask = [&](const std::string& head, size_t bytes) {
    return client.ask("POST", kPath, head + std::string(bytes, '\0'),
                      {{"Inference-Header-Content-Length", std::to_string(head.size())}});
  };
  constexpr size_t kKeys = 14'000'000, kSamples = 1 << 20;
  const HttpAnswer keys = ask(cat("{\"inputs\":[", binary("KEYS", "UINT8", cat("[", kKeys, "]"), kKeys),
                                  R"(,{"name":"NUMKEYS","datatype":"INT32","shape":[2],"data":[0,)", kKeys, "]}]}"),
                              kKeys);
  EXPECT_EQ(keys.status, 400);
  EXPECT_EQ(error_in(keys),
            "input 'KEYS': the vectors take 280000000 bytes, but a response has at most 268435456: send fewer keys");
  std::string outputs;
  for (int i = 0; i < 5; ++i) outputs += cat(i == 0 ? "" : ",", R"({"name":"deep_emb"})");
  const HttpAnswer samples = ask(
      cat("{\"outputs\":[", outputs, "],\"inputs\":[", binary("dense", "FP16", cat("[", kSamples, ",4]"), kSamples * 8),
          ",", binary("wide_data", "INT64", "[0]", 0), ",",
          binary("wide_data.counts", "UINT8", cat("[", kSamples, ",1]"), kSamples), ",",
          binary("deep_data", "INT64", "[0]", 0), ",",
          binary("deep_data.counts", "UINT8", cat("[", kSamples, ",3]"), kSamples * 3), "]}"),
      kSamples * 12);
  EXPECT_EQ(samples.status, 400);
  EXPECT_EQ(error_in(samples),
            "the outputs take 300 bytes for each of 1048576 samples, but a request may have at most 268435456 bytes of "
            "outputs: send fewer samples");
}

}  // namespace
}  // namespace hctr::test
