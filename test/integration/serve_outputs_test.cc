// huge_ctr serve: outputs by name.
#include <algorithm>
#include <cmath>

#include "serve/served_parity.h"
#include "serve_fixture.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

constexpr const char* kInfer = "/v2/models/ctr/infer";

class ServedOutputs : public ServeTest {
 protected:
  /// The pooled vectors of samples [first, first + count), [count, slots, dim], from the rows of a saved model.
  std::vector<float> pooled(const Result& model, size_t table, const SampleArrays& samples, size_t first, size_t count,
                            bool mean) const {
    const SampleArrays::Keys& keys = samples.inputs[table];
    const auto slots = static_cast<size_t>(keys.slots), dim = tables_[table].dim;
    std::vector<float> all;
    for (size_t bag = first * slots; bag < (first + count) * slots; ++bag) {
      std::vector<float> sum(dim);
      int found = 0;
      for (int64_t k = keys.offsets[bag]; k < keys.offsets[bag + 1]; ++k) {
        const uint64_t slot = tables_[table].by_slot ? bag % slots : 0;
        const auto row = model.rows[table].find({slot, keys.keys[static_cast<size_t>(k)]});
        if (row == model.rows[table].end()) continue;
        ++found;
        for (size_t d = 0; d < dim; ++d) sum[d] += row->second[d];
      }
      const auto bag_size = static_cast<float>(keys.offsets[bag + 1] - keys.offsets[bag]);
      EXPECT_LE(found, 2) << "sums of three and more terms depend on the order";
      for (float& value : sum) all.push_back(mean && bag_size > 0 ? value / bag_size : value);
    }
    return all;
  }
};

TEST_F(ServedOutputs, AreProbabilitiesLogitsAndVectorsOfTheModelsRows) {
  const Result model = train(config_, {"[0]"}, "one");
  const std::vector<float> expected = predicted("one-run");
  const SampleArrays samples = samples_of("one.json");
  const std::vector<std::string> names = {"deep_emb", "loss", "loss.logits", "deep_emb.1", "wide_emb", "OUTPUT0"};
  write_file("store.json", R"({"models": [{"name": "ctr", "model": "one-run"}]})");
  std::string of_own_tables;
  for (const bool with_store : {false, true}) {
    serve::ServeOptions options = options_for({"ctr=one-run"});
    if (with_store) options.store = "store.json";
    const serve::Service service(options);
    // Requests for different outputs, from different clients, may be scored in one batch.
    std::atomic<int> wrong = 0;
    std::vector<std::thread> clients;
    for (unsigned c = 0; c < 4; ++c)
      clients.emplace_back([&, c] {
        HttpClient client(service.http_port());
        std::mt19937 random(c);
        for (int r = 0; r < 30; ++r) {
          const size_t first = random() % 400, count = 1 + random() % 40;
          const std::string request = packed_request(samples, first, count);
          const HttpAnswer answer = client.post(kInfer, c == 0 ? request : with_outputs(request, names));
          const std::vector<float> scores(expected.begin() + static_cast<std::ptrdiff_t>(first),
                                          expected.begin() + static_cast<std::ptrdiff_t>(first + count));
          if (answer.status != 200 || scores_in(answer.body, c == 0 ? 0 : 1) != scores) ++wrong;
          if (c != 0 && scores_in(answer.body, 0) != pooled(model, 1, samples, first, count, true)) ++wrong;
        }
      });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(wrong, 0);

    HttpClient client(service.http_port());
    const std::string request = with_outputs(packed_request(samples, 7, 20), names);
    const HttpAnswer answer = client.post(kInfer, request);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(shape_in(answer.body, 0), "[20,3,5]");
    EXPECT_EQ(shape_in(answer.body, 2), "[20,1]");
    EXPECT_EQ(shape_in(answer.body, 3), "[20,5]");
    EXPECT_EQ(shape_in(answer.body, 4), "[20,1,1]");
    const std::vector<float> deep = scores_in(answer.body, 0), slot = scores_in(answer.body, 3);
    EXPECT_EQ(deep, pooled(model, 1, samples, 7, 20, true));
    EXPECT_EQ(scores_in(answer.body, 4), pooled(model, 0, samples, 7, 20, false));
    EXPECT_EQ(scores_in(answer.body, 5), scores_in(answer.body, 1));
    for (size_t sample = 0; sample < 20; ++sample) {
      EXPECT_TRUE(std::equal(slot.begin() + static_cast<std::ptrdiff_t>(sample * 5),
                             slot.begin() + static_cast<std::ptrdiff_t>(sample * 5 + 5),
                             deep.begin() + static_cast<std::ptrdiff_t>(sample * 15 + 5)))
          << "sample " << sample;
      EXPECT_NEAR(1 / (1 + std::exp(-scores_in(answer.body, 2)[sample])), scores_in(answer.body, 1)[sample], 1e-6);
    }
    // the same request, answered with binary data
    const HttpAnswer binary = client.post(
        kInfer, with_change(request, "{\"outputs\"", R"({"parameters":{"binary_data_output":true},"outputs")"));
    const size_t json_bytes = std::strtoul(binary.headers.at("inference-header-content-length").c_str(), nullptr, 10);
    std::string all;
    for (size_t o = 0; o < names.size(); ++o) all += bytes_of(scores_in(answer.body, o));
    EXPECT_EQ(binary.body.substr(json_bytes), all);
    if (with_store) {
      EXPECT_EQ(answer.body, of_own_tables) << "tables of a store give the same outputs";
    }
    of_own_tables = answer.body;
    const Json metadata = Json::parse(client.get("/v2/models/ctr").body, "metadata");
    EXPECT_EQ(names_in(*metadata.find("outputs")), (std::vector<std::string>{"loss", "loss.logits"}));
    const Json config = Json::parse(client.get("/v2/models/ctr/config").body, "config");
    EXPECT_EQ(
        names_in(*config.find("embeddings")),
        (std::vector<std::string>{"wide_emb", "deep_emb", "wide_emb.0", "deep_emb.0", "deep_emb.1", "deep_emb.2"}));
    const std::string unknown =
        error_in(client.post(kInfer, with_outputs(packed_request(samples, 0, 1), {"deep_emb.3"})));
    EXPECT_TRUE(unknown.starts_with("unexpected inference output 'deep_emb.3' for model 'ctr'; did you mean"))
        << unknown;
    EXPECT_NE(unknown.find("; outputs are loss, wide_emb, deep_emb, loss.logits, "), std::string::npos) << unknown;
  }
}

TEST_F(ServedOutputs, OfALossWithSeveralLabelsAreNamedByTheirColumns) {
  std::string rows = "click,buy,price,city\n";
  for (int r = 0; r < 200; ++r) rows += cat(r % 3 == 0, ",", r % 4 == 0, ",", r * 7 % 101, ",city", r % 5, "\n");
  write_file("rows.csv", rows);
  write_file("two.json", R"({
  "solver": {"max_iter": 20, "batchsize": 50, "batchsize_eval": 70, "gpu": [0], "seed": 3, "display": 0},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "rows.csv", "eval_source": "rows.csv",
     "csv": {"labels": ["click", "buy"], "dense": [{"columns": ["price"]}], "slots": [{"columns": ["city"]}]},
     "label": {"top": "label", "label_dim": 2}, "dense": {"top": "dense", "dense_dim": 1},
     "sparse": [{"top": "keys", "slot_num": 1, "nnz_per_slot": 1}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "emb",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "emb", "top": "flat", "leading_dim": 4},
    {"type": "Concat", "bottom": ["flat", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc", "fc_param": {"num_output": 2}},
    {"type": "MultiCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss", "target_weight": [1, 2]}
  ]})");
  ASSERT_EQ(
      run_program("huge_ctr", {"--train", "two.json", "--run-dir", "two", "--device", "cpu"}, folder_.path()).exit_code,
      0);
  const serve::Service service(options_for({"ctr=two"}));
  HttpClient client(service.http_port());
  const std::string request = R"({"inputs":[{"name":"price","datatype":"INT64","shape":[2],"data":[5,90]},)"
                              R"({"name":"city","datatype":"BYTES","shape":[2],"data":["city1","city4"]}]})";
  const HttpAnswer both = client.post(kInfer, with_outputs(request, {"loss", "loss.logits"}));
  ASSERT_EQ(both.status, 200) << both.body;
  const std::vector<float> scores = scores_in(both.body, 0), logits = scores_in(both.body, 1);
  const HttpAnswer one =
      client.post(kInfer, with_outputs(request, {"loss.buy", "loss.click", "loss.buy.logits", "emb.city"}));
  ASSERT_EQ(one.status, 200) << one.body;
  EXPECT_EQ(shape_in(one.body, 0), "[2,1]");
  EXPECT_EQ(scores_in(one.body, 0), (std::vector<float>{scores[1], scores[3]}));
  EXPECT_EQ(scores_in(one.body, 1), (std::vector<float>{scores[0], scores[2]}));
  EXPECT_EQ(scores_in(one.body, 2), (std::vector<float>{logits[1], logits[3]}));
  EXPECT_EQ(shape_in(one.body, 3), "[2,4]");
  const Json metadata = Json::parse(client.get("/v2/models/ctr").body, "metadata");
  EXPECT_EQ(names_in(*metadata.find("outputs")),
            (std::vector<std::string>{"loss", "loss.logits", "loss.click", "loss.click.logits", "loss.buy",
                                      "loss.buy.logits"}));
}

TEST_F(ServedOutputs, AreThoseThatTheConfigNames) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  fs::create_directories("models/ctr");
  fs::create_directory_symlink(fs::absolute("one-run"), "models/ctr/1");
  const auto with_config = [&](const std::string& outputs) {
    write_file("models/ctr/config.pbtxt", cat("name: \"ctr\" ", outputs));
    return std::make_unique<serve::Service>(options_for({"models"}));
  };
  {
    const auto service = with_config(R"(output { name: "deep_emb.2" data_type: TYPE_FP32 dims: [ -1, 5 ] }
                                        output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] })");
    HttpClient client(service->http_port());
    const HttpAnswer answer = client.post(kInfer, packed_request(samples, 0, 3));
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(names_in(*Json::parse(answer.body, "answer").find("outputs")),
              (std::vector<std::string>{"deep_emb.2", "OUTPUT0"}))
        << "in the order of the config";
    EXPECT_EQ(shape_in(answer.body, 0), "[3,5]");
    const Json metadata = Json::parse(client.get("/v2/models/ctr").body, "metadata");
    EXPECT_EQ(names_in(*metadata.find("outputs")), (std::vector<std::string>{"deep_emb.2", "OUTPUT0"}));
    const HttpAnswer other = client.post(kInfer, with_outputs(packed_request(samples, 0, 3), {"deep_emb"}));
    EXPECT_EQ(other.status, 400);
    EXPECT_NE(error_in(other).find("unexpected inference output 'deep_emb' for model 'ctr'"), std::string::npos);
    EXPECT_EQ(serve::compare_with_offline(*service, "ctr").different, 0);
  }
  const auto refusal = [&](const std::string& outputs) {
    return message_of(Kind::config, [&] { with_config(outputs); });
  };
  const std::string where = "failed to load 'ctr', version 1: config of model 'ctr': ";
  EXPECT_EQ(refusal(R"(output { name: "los" data_type: TYPE_FP32 dims: [ 1 ] })"),
            where + "the model has no output 'los'; did you mean \"loss\"?");
  EXPECT_EQ(refusal(R"(output { name: "loss" data_type: TYPE_FP32 dims: [ 2, 1 ] })"),
            where + "output 'loss' has \"dims\" [2,1], but the model's output has [-1,1]");
  EXPECT_EQ(refusal(R"(output { name: "loss" data_type: TYPE_FP64 dims: [ 1 ] })"),
            where + "output 'loss' is TYPE_FP64, but outputs are TYPE_FP32");
  const auto service = with_config(R"(output { name: "loss.logits" data_type: TYPE_FP32 dims: [ -1 ] })");
  EXPECT_NE(message_of(Kind::config, [&] { (void)serve::compare_with_offline(*service, "ctr"); })
                .find("has no output of probabilities to compare"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
