#include "net/model/layer_state.h"

#include <gtest/gtest.h>

#include "core/base/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

const std::string kNormed = R"(
  {"type": "BatchNorm", "bottom": "dense", "top": "bn", "bn_param": {"factor": 0.25, "eps": 1e-4}},
  {"type": "InnerProduct", "bottom": "bn", "top": "fc", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss")";

TEST(LayerState, TrainingWritesWhatEvaluationReads) {
  TinyModel tiny(config_of(kNormed + "}"));
  tiny.evaluate();
  const std::vector<float> before = tiny.prediction();
  tiny.train();
  tiny.evaluate();
  EXPECT_NE(tiny.prediction(), before);
}

TEST(LayerState, AfterOneBatchEvaluationNormalisesByItAlmost) {
  // After one batch, the running statistics equal the statistics of the batch. Training and evaluation of the batch
  // then differ only by the biased and the unbiased variance.
  TinyModel tiny(config_of(kNormed + "}"));
  tiny.state.learning_rate = 0;
  tiny.train();
  tiny.evaluate();
  const auto trained = to_host<float>(tiny.runtime_stream(), tiny.model.prediction(Phase::train));
  const std::vector<float> evaluated = tiny.prediction();
  for (size_t b = 0; b < 8; ++b) EXPECT_NEAR(trained[b], evaluated[b], 0.03) << b;
}

TEST(LayerState, IsSavedWithTheDenseModelAndReadBack) {
  const TemporaryFolder folder;
  TinyModel tiny(config_of(kNormed + "}"));
  for (int i = 0; i < 3; ++i) tiny.train();
  const auto files = tiny.model.save((folder / "m").string(), 3);
  ASSERT_EQ(files.size(), 4u) << "dense, layout, statistics, manifest";
  EXPECT_EQ(files[2], folder / "m_dense_3.model.ntp.json");
  tiny.evaluate();

  Config config = config_of(kNormed + "}");
  config.solver.dense_model_file = files[0].string();
  TinyModel other(std::move(config));
  other.model.load();
  other.evaluate();
  EXPECT_EQ(other.prediction(), tiny.prediction());
}

TEST(LayerState, AFileWithoutWeightIsTakenAsItStands) {
  const TemporaryFolder folder;
  const Config config = config_of(kNormed + "}");
  const Graph graph = [&] {
    Problems problems;
    return wire(config, 8, problems);
  }();
  Runtime runtime(Device{}, {});
  LayerState state(config, graph, runtime);
  write_text(folder / "s.json", R"({"layers":[{"type":"BatchNorm","mean":[1.500000,2,3],"var":[4,5,6.25]}]})");
  state.load(folder / "s.json", runtime.compute_stream());
  EXPECT_EQ(to_host<float>(runtime.compute_stream(), state.of_node(0)[0]), (std::vector<float>{1.5f, 2, 3}));
  EXPECT_EQ(to_host<float>(runtime.compute_stream(), state.of_node(0)[1]), (std::vector<float>{4, 5, 6.25f}));
  EXPECT_EQ(to_host<float>(runtime.compute_stream(), state.of_node(0)[2]), std::vector<float>{1});
  EXPECT_TRUE(state.of_node(1).empty());
  FileSet set;
  state.save(set, folder / "again.json", runtime.compute_stream());
  set.commit();
  EXPECT_EQ(read_text(folder / "again.json", "statistics"),
            "{\"layers\":[{\"type\":\"BatchNorm\",\"name\":\"bn\",\"mean\":[1.5,2.0,3.0],\"var\":[4.0,5.0,6.25],"
            "\"weight\":[1.0]}]}\n");
}

TEST(LayerState, TakesTheFirstHalfOfListsThatAreTwiceAsLong) {
  const TemporaryFolder folder;
  const Config config = config_of(kNormed + "}");
  Problems problems;
  const Graph graph = wire(config, 8, problems);
  Runtime runtime(Device{}, {});
  LayerState state(config, graph, runtime);
  write_text(folder / "s.json", R"({"layers":[{"type":"BatchNorm","mean":[1,2,3,0,0,0],"var":[4,5,6,7,8,9]}]})");
  std::string lines;
  state.load(folder / "s.json", runtime.compute_stream(), Log([&](Level, std::string_view line) { lines += line; }));
  EXPECT_EQ(to_host<float>(runtime.compute_stream(), state.of_node(0)[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(to_host<float>(runtime.compute_stream(), state.of_node(0)[1]), (std::vector<float>{4, 5, 6}));
  EXPECT_NE(lines.find("6 numbers as \"mean\" of layer 0, as HugeCTR 3.0 writes them in mixed precision: the first 3"),
            std::string::npos)
      << lines;
}

TEST(LayerState, RefusesAFileOfAnotherModel) {
  const TemporaryFolder folder;
  const Config config = config_of(kNormed + "}");
  Problems problems;
  const Graph graph = wire(config, 8, problems);
  Runtime runtime(Device{}, {});
  LayerState state(config, graph, runtime);
  const fs::path path = folder / "s.json";
  const auto refusal = [&](const std::string& text) {
    write_text(path, text);
    const std::string message = message_of(Kind::data, [&] { state.load(path, runtime.compute_stream()); });
    return message.substr(path.string().size() + 3);
  };
  EXPECT_EQ(refusal(R"({"layers":[]})"),
            "has statistics of 0 layers, but this config has 1 such layers: the file belongs to another model");
  EXPECT_EQ(refusal(R"({"layers":[{"type":"LayerNorm"}]})"),
            "has LayerNorm as layer 0, but this config has BatchNorm ('bn'): the file belongs to another model");
  EXPECT_EQ(refusal(R"({"layers":[{"type":"BatchNorm","mean":[1,2],"var":[1,2]}]})"),
            "has 2 numbers as \"mean\" of layer 0, but 'bn' needs 3: the file belongs to another model");
  EXPECT_EQ(refusal(R"({"layers":[{"type":"BatchNorm","mean":[1,2,3]}]})"),
            "has 0 numbers as \"var\" of layer 0, but 'bn' needs 3: the file belongs to another model");
  EXPECT_EQ(refusal(R"({"layers":[{"type":"BatchNorm","mean":[1,2,"x"],"var":[1,2,3]}]})"),
            "holds the string \"x\" in \"mean\" of layer 0: the file belongs to another model");
  EXPECT_EQ(to_host<float>(runtime.compute_stream(), state.of_node(0)[0]), (std::vector<float>{0, 0, 0}));
}

TEST(LayerState, AModelWithoutSuchLayersWritesNoFile) {
  const TemporaryFolder folder;
  TinyModel tiny(config_of(R"({"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 1}},
                              {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"})"));
  EXPECT_EQ(tiny.model.save((folder / "m").string(), 0).size(), 3u) << "dense, layout, manifest";
}

TEST(LayerState, GammaAndBetaAreNotPenalised) {
  TinyModel plain(config_of(kNormed + "}")), penalised(config_of(kNormed + R"(, "regularizer": "L2", "lambda": 0.5})"));
  plain.evaluate();
  penalised.evaluate();
  // The penalty includes the 3 weights and the bias of the fully connected layer. It excludes the three gammas, which
  // are 1.
  const float difference = penalised.loss(Phase::evaluate) - plain.loss(Phase::evaluate);
  const TemporaryFolder folder;
  const std::string bytes = read_text(plain.model.save((folder / "m").string(), 0)[0], "dense model");
  std::vector<float> weights(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(weights.data()));
  ASSERT_EQ(weights.size(), 10u);
  float sum = 0;
  for (size_t i = 6; i < 10; ++i) sum += weights[i] * weights[i];
  EXPECT_NEAR(difference, 0.5f / (2 * 8) * sum, 1e-5);
}

}  // namespace
}  // namespace hctr::test
