// huge_ctr serve: scores for clients.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <span>

#include "serve/grpc_front.h"
#include "serve/proto_reader.h"
#include "serve_fixture.h"

namespace hctr::test {
namespace {

class ServedScores : public ServeTest {};

TEST_F(ServedScores, AreThoseOfPredictForManyClientsWithRandomPieces) {
  train(with_batch_norm(config_), {"[0]"}, "one");
  const std::vector<float> expected = predicted("one-run");
  const SampleArrays samples = samples_of("one.json");
  const serve::Service service(options_for({"ctr=one-run"}));
  std::vector<float> scores(expected.size(), -1);
  std::atomic<size_t> next = 0;
  std::vector<std::thread> clients;
  std::atomic<int> failed = 0;
  for (unsigned c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      HttpClient client(service.http_port());
      std::mt19937 random(c);
      for (;;) {
        const size_t count = 1 + random() % 9, first = next.fetch_add(count);
        if (first >= scores.size()) return;
        const size_t own = std::min(count, scores.size() - first);
        const HttpAnswer answer = client.post("/v2/models/ctr/infer", packed_request(samples, first, own));
        if (answer.status != 200) {
          ++failed;
          continue;
        }
        const std::vector<float> got = scores_in(answer.body);
        std::copy(got.begin(), got.end(), scores.begin() + static_cast<std::ptrdiff_t>(first));
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(scores, expected) << "bit for bit, whatever they were joined with";
  HttpClient client(service.http_port());
  const Json stats = Json::parse(client.get("/v2/models/ctr/stats").body, "stats");
  const Json& model = (*stats.find("model_stats")->array())[0];
  EXPECT_EQ(*model.find("inference_count")->integer(), 500);
  EXPECT_LE(*model.find("execution_count")->integer(), 500);
}

TEST_F(ServedScores, AreTheSameAsJsonBinaryGzipChunkedAndSharedMemory) {
  train(config_, {"[0]"}, "one");
  const std::vector<float> expected = predicted("one-run");
  const SampleArrays samples = samples_of("one.json");
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.shared_memory = true;
  const serve::Service service(options);
  HttpClient client(service.http_port());
  const std::string path = "/v2/models/ctr/versions/20/infer", json = packed_request(samples, 0, 50);
  const std::vector<float> first(expected.begin(), expected.begin() + 50);
  EXPECT_EQ(scores_in(client.post(path, json).body), first);

  const auto& wide = samples.inputs[0];
  const auto& deep = samples.inputs[1];
  const auto input = [](const std::string& name, const std::string& type, const std::string& shape, size_t bytes) {
    return cat("{\"name\":\"", name, "\",\"datatype\":\"", type, "\",\"shape\":", shape,
               ",\"parameters\":{\"binary_data_size\":", bytes, "}}");
  };
  std::string tail, inputs;
  const auto add = [&](const std::string& name, const std::string& type, const std::string& shape, const auto& values) {
    const std::string bytes = bytes_of(values);
    // the order of inputs is arbitrary
    inputs = cat(input(name, type, shape, bytes.size()), inputs.empty() ? "" : ",", inputs);
    tail = bytes + tail;
  };
  add(samples.dense_name, "FP32", "[50,4]", std::vector<float>(samples.dense.begin(), samples.dense.begin() + 200));
  for (const auto* keys : {&wide, &deep}) {
    const auto bags = static_cast<size_t>(50 * keys->slots);
    std::vector<int32_t> counts;
    for (size_t bag = 0; bag < bags; ++bag)
      counts.push_back(static_cast<int32_t>(keys->offsets[bag + 1] - keys->offsets[bag]));
    const auto count = keys->offsets[bags];
    add(keys->name, "INT64", cat("[", count, "]"),
        std::vector<int64_t>(keys->keys.begin(), keys->keys.begin() + count));
    add(keys->name + ".counts", "INT32", cat("[50,", keys->slots, "]"), counts);
  }
  const std::string head = cat("{\"parameters\":{\"binary_data_output\":true},\"inputs\":[", inputs, "]}");
  const std::map<std::string, std::string> length = {{"Inference-Header-Content-Length", std::to_string(head.size())}};
  const HttpAnswer binary = client.ask("POST", path, head + tail, length);
  ASSERT_EQ(binary.status, 200) << binary.body;
  const size_t json_bytes = std::strtoul(binary.headers.at("inference-header-content-length").c_str(), nullptr, 10);
  EXPECT_EQ(binary.body.substr(json_bytes), bytes_of(first));

  EXPECT_EQ(
      client.post("/v2/systemsharedmemory/region/out/register", R"({"key":"/nothing-here","byte_size":4})").status,
      400);
  const std::string key = cat("/hctr_serve_test_", ::getpid());
  const int file = ::shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::ftruncate(file, 1000), 0);
  const auto region = [&](const std::string& size) {
    return client.post("/v2/systemsharedmemory/region/out/register",
                       cat(R"({"key":")", key, R"(","byte_size":)", size, "}"));
  };
  EXPECT_EQ(region("1001").status, 400) << "more than there is";
  EXPECT_EQ(region("-1").status, 400);
  EXPECT_EQ(region("1000").status, 200);
  const auto into = [&](int64_t offset) {
    return cat(json.substr(0, json.size() - 1),
               R"(,"outputs":[{"name":"loss","parameters":{"shared_memory_region":"out",)",
               R"("shared_memory_byte_size":200,"shared_memory_offset":)", offset, "}}]}");
  };
  EXPECT_EQ(client.post(path, into(801)).status, 400);
  EXPECT_EQ(client.post(path, into(8)).status, 200);
  std::string stored(200, '\0');
  EXPECT_EQ(::pread(file, stored.data(), 200, 8), 200);
  EXPECT_EQ(stored, bytes_of(first));
  ASSERT_EQ(::ftruncate(file, 4), 0);  // the client truncates its registered shared memory
  EXPECT_NE(client.post(path, into(8)).status, 0);
  ::close(file);
  ::shm_unlink(key.c_str());
  EXPECT_EQ(client.get("/v2/health/live").status, 200);
}

/// A client sends text cells of a row, and receives the scores of the same row in a file.
TEST_F(ServedScores, OfColumnsAreThoseOfTheSameRowsInAFile) {
  std::string rows = "click,price,city,tags\n";
  for (int r = 0; r < 300; ++r)
    rows += cat(r % 3 == 0, ",", r % 10 == 0 ? std::string() : std::to_string(r * 7 % 101), ",",
                r % 7 == 0 ? "" : cat("city", r % 5), ",",
                r % 4 == 0   ? ""
                : r % 4 == 1 ? "a"
                             : "b|c",
                "\n");
  write_file("rows.csv", rows);
  write_file("one.json", R"({
  "solver": {"max_iter": 40, "batchsize": 50, "batchsize_eval": 70, "gpu": [0], "seed": 3, "display": 0},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "rows.csv", "eval_source": "rows.csv",
     "csv": {"labels": ["click"], "dense": [{"columns": ["price"], "default": 50}],
             "slots": [{"columns": ["city"], "default": "none"}, {"columns": ["tags"], "separator": "|"}]},
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
     "sparse": [{"top": "keys", "slot_num": 2, "nnz_per_slot": [1, 3]}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "emb", "top": "flat", "leading_dim": 8},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"}
  ]})");
  ASSERT_EQ(run_program("huge_ctr", {"--train", "one.json", "--run-dir", "one-run", "--device", "cpu"}, folder_.path())
                .exit_code,
            0);
  const std::vector<float> expected = predicted("one-run");
  const serve::Service service(options_for({"one-run"}));
  HttpClient client(service.http_port());
  std::vector<std::vector<std::string>> columns(4);
  std::istringstream lines(rows);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line))
    for (size_t c = 0, at = 0; c < 4; ++c) {
      const size_t end = std::min(line.find(',', at), line.size());
      columns[c].push_back(line.substr(at, end - at));
      at = end + 1;
    }
  const std::string path = "/v2/models/one-run/infer";
  const auto text = [&](size_t column, size_t first, size_t count) {
    const char* const names[] = {"click", "price", "city", "tags"};
    return tensor(names[column], "BYTES", cat("[", count, "]"), list_of(columns[column], first, count));
  };
  const auto request = [](const std::string& inputs) { return cat("{\"inputs\":[", inputs, "]}"); };
  const HttpAnswer all = client.post(
      path, request(cat(text(3, 0, 300), ",", text(0, 0, 300), ",", text(2, 0, 300), ",", text(1, 0, 300))));
  ASSERT_EQ(all.status, 200) << all.body;
  EXPECT_EQ(scores_in(all.body), expected) << "by name, in any order, with the label or without";
  const HttpAnswer three = client.post(path, request(cat(text(1, 4, 3), ",", text(2, 4, 3), ",", text(3, 4, 3))));
  EXPECT_EQ(scores_in(three.body), std::vector<float>(expected.begin() + 4, expected.begin() + 7));
  // Cells as JSON numbers and lists: row 5 has price 35 and tag "a".
  const HttpAnswer typed = client.post(
      path, request(cat(tensor("price", "INT64", "[1]", "[35]"), ",", text(2, 5, 1), ",",
                        tensor("tags", "BYTES", "[1]", "[\"a\"]"), ",", tensor("tags.counts", "INT32", "[1]", "[1]"))));
  EXPECT_EQ(scores_in(typed.body), std::vector<float>{expected[5]});
  // A missing column gets the default of the config. Row 0 has neither price nor city.
  const HttpAnswer missing = client.post(path, request(text(3, 0, 1)));
  EXPECT_EQ(scores_in(missing.body), std::vector<float>{expected[0]});
  EXPECT_EQ(error_in(client.post(path, request(text(2, 0, 1)))),
            "input 'tags' is missing: the config of model 'one-run' has no \"default\" for this column");
  EXPECT_EQ(error_in(client.post(path, request(tensor("cyti", "BYTES", "[1]", "[\"a\"]")))),
            "unexpected inference input 'cyti' for model 'one-run'; did you mean \"city\"?; inputs are dense, keys, "
            "keys.counts, price, city, tags or click");
  EXPECT_EQ(error_in(client.post(path, request(cat(text(3, 0, 2), ",", text(2, 0, 1))))),
            "input 'tags' has 2 samples, but input 'city' has 1");
  const HttpAnswer number =
      client.post(path, request(cat(tensor("price", "BYTES", "[1]", "[\"abc\"]"), ",", text(3, 0, 1))));
  EXPECT_EQ(number.status, 400);
  EXPECT_NE(error_in(number).find("abc"), std::string::npos) << error_in(number);
  EXPECT_EQ(error_in(number).find("memory:"), std::string::npos) << error_in(number);
}

TEST_F(ServedScores, OfARankingAreThoseOfTheRepeatedSample) {
  train(with_batch_norm(config_), {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  SampleArrays one_user = samples;
  const auto dim = static_cast<size_t>(samples.dense_dim);
  constexpr size_t kItems = 5;
  for (size_t i = dim; i < kItems * dim; ++i) one_user.dense[i] = samples.dense[i % dim];
  const serve::Service service(options_for({"ctr=one-run"}));
  HttpClient client(service.http_port());
  const std::vector<float> expected =
      scores_in(client.post("/v2/models/ctr/infer", packed_request(one_user, 0, kItems)).body);
  const std::vector<double> dense(one_user.dense.begin(), one_user.dense.end());
  const auto dense_of = [&](size_t count) {
    return tensor(samples.dense_name, "FP32", cat("[", count, ",", dim, "]"), list_of(dense, 0, count * dim));
  };
  std::string request = with_change(packed_request(one_user, 0, kItems), dense_of(kItems), dense_of(1));
  EXPECT_EQ(client.post("/v2/models/ctr/infer", request).status, 400) << "samples differ";
  request = with_change(request, "{\"inputs\"", R"({"parameters":{"ranking":true},"inputs")");
  EXPECT_EQ(scores_in(client.post("/v2/models/ctr/infer", request).body), expected);
  const HttpAnswer many =
      client.post("/v2/models/ctr/infer", R"({"parameters":{"ranking":true},"inputs":[)" +
                                              tensor(samples.dense_name, "FP32", "[1099511627776,0]", "[]") + "]}");
  EXPECT_EQ(many.status, 400) << many.body;
}

/// The fields of a gRPC request that hold the samples [first, first + count): its inputs and their raw contents.
struct GrpcInputs {
  std::string inputs, contents;
};
GrpcInputs inputs_for_grpc(const SampleArrays& samples, size_t first, size_t count) {
  GrpcInputs fields;
  const auto add = [&](const std::string& input, const std::string& type, std::initializer_list<size_t> shape,
                       const auto& values) {
    std::string sizes, one;
    for (const size_t size : shape) append_varint(sizes, size);
    serve::append_bytes_field(one, 1, input);
    serve::append_bytes_field(one, 2, type);
    serve::append_bytes_field(one, 3, sizes);
    serve::append_bytes_field(fields.inputs, 5, one);
    serve::append_bytes_field(
        fields.contents, 7,
        {reinterpret_cast<const char*>(values.data()), static_cast<size_t>(values.size()) * sizeof(values[0])});
  };
  const auto dim = static_cast<size_t>(samples.dense_dim);
  add(samples.dense_name, "FP32", {count, dim}, std::span(samples.dense).subspan(first * dim, count * dim));
  for (const SampleArrays::Keys& keys : samples.inputs) {
    const auto slots = static_cast<size_t>(keys.slots);
    const auto ends = std::span(keys.offsets).subspan(first * slots, count * slots + 1);
    std::vector<int32_t> counts;
    for (size_t bag = 0; bag < count * slots; ++bag) counts.push_back(static_cast<int32_t>(ends[bag + 1] - ends[bag]));
    const auto begin = static_cast<size_t>(ends.front()), size = static_cast<size_t>(ends.back()) - begin;
    add(keys.name, "INT64", {size}, std::span(keys.keys).subspan(begin, size));
    add(keys.name + ".counts", "INT32", {count, slots}, counts);
  }
  return fields;
}

std::string model_field(const std::string& model) {
  std::string field;
  serve::append_bytes_field(field, 1, model);
  return field;
}

std::string scores_in_message(const serve::GrpcAnswer& answer) {
  std::string scores;
  for (serve::ProtoReader field(answer.response); field.next();)
    if (field.number() == 6) scores = field.text();
  return scores;
}

/// Sends a request over gRPC, with raw tensor contents.
TEST_F(ServedScores, ByGrpcAreThoseByHttp) {
  if (kSanitized) GTEST_SKIP() << "gRPC is not built with sanitizers";
  if (const std::string why = serve::why_no_grpc(); !why.empty()) GTEST_SKIP() << why;
  train(config_, {"[0]"}, "one");
  const std::vector<float> expected = predicted("one-run");
  const SampleArrays samples = samples_of("one.json");
  const serve::Service service(options_for({"ctr=one-run"}));
  const auto client = serve::connect_grpc(cat("127.0.0.1:", service.grpc_port()));
  const auto call = [&](const std::string& method, const std::string& request, int64_t timeout_us = 60'000'000) {
    return serve::call_grpc(*client, "/inference.GRPCInferenceService/" + method, request, timeout_us);
  };
  using serve::append_bytes_field;
  const std::string name = model_field("ctr");
  const auto [request, raw] = inputs_for_grpc(samples, 0, 20);
  const serve::GrpcAnswer answer = call("ModelInfer", name + request + raw);
  ASSERT_EQ(answer.status, 0) << answer.message;
  EXPECT_EQ(scores_in_message(answer), bytes_of(std::vector<float>(expected.begin(), expected.begin() + 20)));
  std::string output, wanted;
  append_bytes_field(output, 1, "deep_emb.1");
  append_bytes_field(wanted, 6, output);
  const serve::GrpcAnswer selected = call("ModelInfer", name + request + wanted + raw);
  ASSERT_EQ(selected.status, 0) << selected.message;
  const std::string vectors = scores_in_message(selected);
  HttpClient http(service.http_port());
  EXPECT_EQ(vectors,
            bytes_of(scores_in(
                http.post("/v2/models/ctr/infer", with_outputs(packed_request(samples, 0, 20), {"deep_emb.1"})).body)));
  EXPECT_EQ(vectors.size(), 20 * 5 * sizeof(float));

  EXPECT_EQ(call("ServerReady", "").response, std::string("\x08\x01", 2));
  EXPECT_EQ(serve::call_grpc(*client, "/grpc.health.v1.Health/Check", "", 60'000'000).response,
            std::string("\x08\x01", 2));
  EXPECT_NE(call("ModelMetadata", name).response.find("wide_data.counts"), std::string::npos);
  EXPECT_EQ(call("NoSuchCall", "").status, 12);
  EXPECT_EQ(call("ModelInfer", "\xff").status, 3);
  const serve::GrpcAnswer missing = call("ModelInfer", name + request);
  EXPECT_EQ(missing.status, 3) << "inputs without data";
  std::string other;
  append_bytes_field(other, 1, "zz");
  EXPECT_EQ(call("ModelInfer", other).status, 5);
  EXPECT_EQ(call("RepositoryModelLoad", "").status, 3);
}

/// With one instance of the model, a front-end thread also scores small requests that other threads have queued.
TEST_F(ServedScores, OfSingleRowsByManyGrpcClientsAreThoseOfPredict) {
  if (kSanitized) GTEST_SKIP() << "gRPC is not built with sanitizers";
  if (const std::string why = serve::why_no_grpc(); !why.empty()) GTEST_SKIP() << why;
  train(config_, {"[0]"}, "one");
  const std::vector<float> expected = predicted("one-run");
  const SampleArrays samples = samples_of("one.json");
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.instances = 1;
  const serve::Service service(options);
  std::vector<std::thread> clients;
  std::vector<std::string> scores(expected.size());
  std::atomic<size_t> next = 0;
  for (int c = 0; c < 12; ++c)
    clients.emplace_back([&] {
      const auto client = serve::connect_grpc(cat("127.0.0.1:", service.grpc_port()));
      for (size_t row; (row = next.fetch_add(1)) < scores.size();) {
        const GrpcInputs fields = inputs_for_grpc(samples, row, 1);
        scores[row] =
            scores_in_message(serve::call_grpc(*client, "/inference.GRPCInferenceService/ModelInfer",
                                               model_field("ctr") + fields.inputs + fields.contents, 60'000'000));
      }
    });
  for (std::thread& client : clients) client.join();
  for (size_t row = 0; row < scores.size(); ++row)
    EXPECT_EQ(scores[row], bytes_of(std::span(&expected[row], 1))) << row;
}

TEST_F(ServedScores, CanBeMeasuredByHttpGrpcAndSharedMemory) {
  if (kSanitized) GTEST_SKIP() << "builds with sanitizers have no bench";
  train(config_, {"[0]"}, "one");
  serve::ServeOptions options = options_for({"ctr=one-run"});
  options.shared_memory = true;
  const serve::Service service(options);
  const auto measure = [&](int port, std::vector<std::string> more) {
    std::vector<std::string> words = {"serve",     "ctr",         "--address", cat("127.0.0.1:", port),
                                      "--clients", "2",           "--samples", "3",
                                      "--device",  "cpu",         "--quick",   "--alpha",
                                      "1.1",       "--slot-keys", "100"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("bench", words, folder_.path());
  };
  std::vector<std::pair<std::string, Outcome>> outcomes = {
      {"HTTP, 3 samples", measure(service.http_port(), {})},
      {"shared memory, 3 samples", measure(service.http_port(), {"--shared-memory"})}};
  if (serve::why_no_grpc().empty() && service.grpc_port() > 0)
    outcomes.emplace_back("gRPC, 3 samples", measure(service.grpc_port(), {"--grpc"}));
  for (const auto& [name, outcome] : outcomes) {
    EXPECT_EQ(outcome.exit_code, 0) << name << outcome.err;
    EXPECT_NE(outcome.out.find(name), std::string::npos) << outcome.out;
  }
  HttpClient client(service.http_port());
  EXPECT_EQ(client.get("/v2/systemsharedmemory/status").body, "[]") << "the region is unregistered";
  const Json stats = Json::parse(client.get("/v2/models/ctr/stats").body, "stats");
  const Json& model = (*stats.find("model_stats")->array())[0];
  EXPECT_GE(*model.find("inference_count")->integer(), 3 * std::ssize(outcomes));
  EXPECT_EQ(*model.find("inference_stats")->find("fail")->find("count")->integer(), 0);
}

}  // namespace
}  // namespace hctr::test
