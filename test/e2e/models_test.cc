// Trains a small model of each common family on data with planted signals, to test wiring, planning and gradients
// together.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "core/device/device.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

class Models : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "data.json", small_config());
    make_data(folder_.path(), "data.json", 20000, 5000, {"--vocabulary", "30", "--interactions", "0"});
  }

  /// Returns small_config() with these layers between the embeddings and the loss. "wide_emb" is [samples, 1, 1],
  /// "deep_emb" [samples, 3, 5], "dense" [samples, 4]. The output of the last layer must be named "logits".
  static std::string config(const std::string& layers) {
    const std::string all = small_config();
    const size_t begin = all.find("    {\"name\": \"wide\""), loss = all.find("    {\"name\": \"loss\"");
    return with_change(all.substr(0, begin) + layers + ",\n" + all.substr(loss), "\"add1\"", "\"logits\"");
  }

  void learns(
      const std::string& layers,
      const std::function<std::string(std::string)>& changed = [](std::string same) { return same; }) {
    write_file(folder_ / "config.json", changed(config(layers)));
    std::vector<std::string> devices = {"cpu"};
    if (find_gpus().count > 0) devices.push_back("cuda");
    for (const std::string& device : devices) {
      SCOPED_TRACE(device);
      const Outcome done =
          run_program("huge_ctr", {"--train", "config.json", "--run-dir", device, "--device", device}, folder_.path());
      ASSERT_EQ(done.exit_code, 0) << done.err << done.out;
      double auc = 0;  // AUC of the last evaluation
      std::istringstream lines(read_file(folder_ / device / "metrics.jsonl"));
      for (std::string text; std::getline(lines, text);) {
        const Json line = Json::parse(text, "metrics.jsonl");
        if (const Json* value = line.find("AUC")) auc = value->number();
      }
      EXPECT_GT(auc, 0.6) << done.out;
    }
  }

  void refuses(const std::string& layers, const std::vector<std::string>& pieces) {
    write_file(folder_ / "config.json", config(layers));
    const Outcome outcome = run_program("huge_ctr", {"--check", "config.json", "--device", "cpu"}, folder_.path());
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    for (const std::string& piece : pieces)
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.err;
  }

  TemporaryFolder folder_;
};

/// A layer that reads the wide embedding. Every model must contain this layer.
const std::string kWideLayer = R"({"type": "Reshape", "bottom": "wide_emb", "top": "wide", "leading_dim": 1},
  )";

TEST_F(Models, DeepAndCross) {
  for (const char* matrix : {"", R"(, "projection_dim": 3)", R"(, "full_matrix": true)"})
    learns(kWideLayer + R"({"type": "Reshape", "bottom": "deep_emb", "top": "deep", "leading_dim": 15},
  {"type": "Concat", "bottom": ["deep", "dense", "wide"], "top": "input"},
  {"type": "Slice", "bottom": "input", "top": ["left", "right"], "ranges": [[0, 20], [0, 20]]},
  {"type": "MultiCross", "bottom": "left", "top": "cross", "mc_param": {"num_layers": 3)" +
           std::string(matrix) + R"(}},
  {"type": "InnerProduct", "bottom": "right", "top": "fc1", "fc_param": {"num_output": 16}},
  {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
  {"type": "Concat", "bottom": ["cross", "relu1"], "top": "both"},
  {"type": "InnerProduct", "bottom": "both", "top": "logits", "fc_param": {"num_output": 1}})");
}

TEST_F(Models, DeepFm) {
  learns(kWideLayer + R"({"type": "Reshape", "bottom": "deep_emb", "top": "rows", "leading_dim": 5},
  {"type": "Slice", "bottom": "rows", "top": ["vectors", "weights"], "ranges": [[0, 4], [4, 5]]},
  {"type": "Reshape", "bottom": "vectors", "top": "deep", "leading_dim": 12},
  {"type": "Reshape", "bottom": "weights", "top": "first_order", "leading_dim": 3},
  {"type": "WeightMultiply", "bottom": "dense", "top": "dense_vectors", "weight_dims": [4, 4]},
  {"type": "Concat", "bottom": ["deep", "dense_vectors"], "top": "all"},
  {"type": "FmOrder2", "bottom": "all", "top": "fm", "out_dim": 4},
  {"type": "ReduceSum", "bottom": "fm", "top": "second", "axis": 1},
  {"type": "ReduceSum", "bottom": "first_order", "top": "first", "axis": 1},
  {"type": "MLP", "bottom": "all", "top": "mlp", "mlp_param": {"num_outputs": [16, 1], "activations": ["Relu", "None"]}},
  {"type": "Add", "bottom": ["first", "second", "mlp", "wide"], "top": "logits"})");
}

TEST_F(Models, Dlrm) {
  learns(kWideLayer + R"({"type": "Cast", "bottom": "dense", "top": "dense16"},
  {"type": "FusedInnerProduct", "position": "Head", "bottom": "dense16", "top": ["a1", "a2", "a3", "a4"], "fc_param": {"num_output": 8}},
  {"type": "FusedInnerProduct", "position": "Tail", "bottom": ["a1", "a2", "a3", "a4"], "top": "bottom", "fc_param": {"num_output": 5}},
  {"type": "Interaction", "bottom": ["bottom", "deep_emb"], "top": "pairs"},
  {"type": "FusedInnerProduct", "bottom": "pairs", "top": "top1", "fc_param": {"num_output": 16}},
  {"type": "InnerProduct", "bottom": "top1", "top": "top2", "fc_param": {"num_output": 1}},
  {"type": "Add", "bottom": ["top2", "wide"], "top": "logits"})");
}

TEST_F(Models, InterestInAnItem) {
  learns(kWideLayer + R"({"type": "FusedReshapeConcat", "bottom": "deep_emb", "top": ["history", "item"]},
  {"type": "Scale", "bottom": "item", "top": "items", "scale_param": {"axis": 1, "factor": 2}},
  {"type": "Sub", "bottom": ["items", "history"], "top": "difference"},
  {"type": "DotProduct", "bottom": ["items", "history"], "top": "product"},
  {"type": "Concat", "bottom": ["items", "difference", "product"], "top": "three"},
  {"type": "InnerProduct", "bottom": "three", "top": "scores", "fc_param": {"num_output": 4}},
  {"type": "PReLU", "bottom": "scores", "top": "active"},
  {"type": "Reshape", "bottom": "active", "top": "steps", "time_step": 2, "leading_dim": 4},
  {"type": "ReduceMean", "bottom": "steps", "top": "mean", "axis": 1},
  {"type": "Reshape", "bottom": "mean", "top": "interest", "leading_dim": 4},
  {"type": "Reshape", "bottom": "deep_emb", "top": "last", "selected": [2, 0]},
  {"type": "Concat", "bottom": ["interest", "last", "dense", "wide"], "top": "all"},
  {"type": "InnerProduct", "bottom": "all", "top": "logits", "fc_param": {"num_output": 1}})");
}

TEST_F(Models, ATransformerOverABehaviorSequence) {
  const std::string rows = R"({"type": "Reshape", "bottom": "history", "top": "rows", "leading_dim": 5},
  )";
  std::string heads;
  for (const std::string name : {"queries", "keys", "values"})
    heads += R"({"type": "InnerProduct", "bottom": "rows", "top": ")" + name +
             R"(_rows", "fc_param": {"num_output": 6}},
  {"type": "Reshape", "bottom": ")" +
             name + R"(_rows", "top": ")" + name + R"(", "time_step": 2, "leading_dim": 6},
  )";
  learns(
      kWideLayer + R"({"type": "Slice", "bottom": "deep_emb", "top": ["history", "others"], "ranges": [[0, 2], [2, 6]]},
  {"type": "Slice", "bottom": "lengths", "top": "length", "ranges": [[0, 1]]},
  {"type": "SequenceMask", "bottom": "length", "top": "mask", "max_sequence_len_from": 2},
  )" + rows +
          heads +
          R"({"type": "MultiHeadAttention", "bottom": ["queries", "keys", "values", "mask"], "top": "seen", "num_attention_heads": 2},
  {"type": "Add", "bottom": ["seen", "values"], "top": "added"},
  {"type": "LayerNorm", "bottom": "added", "top": "normed"},
  {"type": "Reshape", "bottom": "normed", "top": "interest"},
  {"type": "Reshape", "bottom": "others", "top": "rest"},
  {"type": "Concat", "bottom": ["interest", "rest", "dense", "wide"], "top": "all"},
  {"type": "InnerProduct", "bottom": "all", "top": "logits", "fc_param": {"num_output": 1}})",
      [](std::string config) {
        config = with_change(config, R"("bottom": "deep_data", "top": "deep_emb")",
                             R"("bottom": "deep_data", "top": ["deep_emb", "lengths"])");
        return with_change(config, R"("embedding_vec_size": 5, "combiner": 1)",
                           R"("embedding_vec_size": 5, "combiner": "none")");
      });
}

TEST_F(Models, RecurrentUnits) {
  learns(
      kWideLayer +
      R"({"type": "GRU", "bottom": "deep_emb", "top": "states", "gru_param": {"num_output": 6, "batchsize": 128, "SeqLength": 3, "vector_size": 5}},
  {"type": "Reshape", "bottom": "states", "top": "last", "selected": [2]},
  {"type": "Concat", "bottom": ["last", "dense", "wide"], "top": "all"},
  {"type": "InnerProduct", "bottom": "all", "top": "logits", "fc_param": {"num_output": 1}})");
}

TEST_F(Models, TopsMustBeAsManyAsALayerMakes) {
  refuses(kWideLayer + R"({"type": "Slice", "bottom": "dense", "top": "part", "ranges": [[0, 1], [1, 2]]},
  {"type": "Add", "bottom": ["part", "wide"], "top": "logits"})",
          {"/layers/4/top", "Slice has 2 outputs with these fields, but 1 top is named"});
}

}  // namespace
}  // namespace hctr::test
