// Fused layers compute the same results as separate layers.
#include "net/fusion/fuse_layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/comm/self_comm.h"
#include "core/device/copy_bytes.h"
#include "net/model/network.h"
#include "support/devices.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

/// fc1 is fused with its ReLU and the following dropout, and fc2 with its ReLU. fc3 stays separate because it has two
/// readers. The dropout after fc4 stays separate because it follows no ReLU.
const char* const kFusable = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc1", "fc_param": {"num_output": 37}},
  {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
  {"type": "Dropout", "bottom": "relu1", "top": "dropout1", "rate": 0.4},
  {"type": "FusedInnerProduct", "bottom": "dropout1", "top": "fc2", "fc_param": {"num_output": 20}},
  {"type": "Dropout", "bottom": "fc2", "top": "dropout2", "rate": 0.5},
  {"type": "InnerProduct", "bottom": "dropout2", "top": "fc3", "fc_param": {"num_output": 9}},
  {"type": "ReLU", "bottom": "fc3", "top": "relu3"},
  {"type": "Add", "bottom": ["fc3", "relu3"], "top": "both"},
  {"type": "InnerProduct", "bottom": "both", "top": "fc4", "fc_param": {"num_output": 1}},
  {"type": "Dropout", "bottom": "fc4", "top": "dropout4", "rate": 0.1},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["dropout4", "label"], "top": "loss"})";

/// "both" is fused, because "score" is its only reader. "each" stays separate because it has two readers, and
/// "two_outputs" because it has two columns.
const char* const kConcats = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "wide", "fc_param": {"num_output": 37}},
  {"type": "InnerProduct", "bottom": "wide", "top": "narrow", "fc_param": {"num_output": 5}},
  {"type": "Concat", "bottom": ["narrow", "dense", "wide"], "top": "both"},
  {"type": "InnerProduct", "bottom": "both", "top": "score", "fc_param": {"num_output": 1}},
  {"type": "Concat", "bottom": ["narrow", "wide"], "top": "again"},
  {"type": "InnerProduct", "bottom": "again", "top": "two_outputs", "fc_param": {"num_output": 2}},
  {"type": "Concat", "bottom": ["two_outputs", "score"], "top": "each"},
  {"type": "InnerProduct", "bottom": "each", "top": "left", "fc_param": {"num_output": 1}},
  {"type": "InnerProduct", "bottom": "each", "top": "right", "fc_param": {"num_output": 1}},
  {"type": "Add", "bottom": ["left", "right"], "top": "sum"},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["sum", "label"], "top": "loss"})";

/// The outputs "vectors" and "numbers" of the first Slice are reshaped to rows that hold all four slots. The other
/// slices, "mixed" and "rest", keep their row length.
const char* const kSlots = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 11}},
  {"type": "Scale", "bottom": "fc", "top": "slots", "scale_param": {"axis": 1, "factor": 4}},
  {"type": "Slice", "bottom": "slots", "top": ["vectors", "numbers"], "ranges": [[0, 10], [10, 11]]},
  {"type": "Reshape", "bottom": "vectors", "top": "row", "leading_dim": 40},
  {"type": "Reshape", "bottom": "numbers", "top": "sums", "leading_dim": 4},
  {"type": "Concat", "bottom": ["row", "dense"], "top": "all"},
  {"type": "FmOrder2", "bottom": "row", "top": "fm", "out_dim": 10},
  {"type": "Slice", "bottom": "sums", "top": ["mixed", "rest"], "ranges": [[0, 2], [2, 4]]},
  {"type": "Reshape", "bottom": "mixed", "top": "again", "leading_dim": 2},
  {"type": "Reshape", "bottom": "rest", "top": "kept", "leading_dim": 2},
  {"type": "Concat", "bottom": ["all", "fm", "again", "kept"], "top": "both"},
  {"type": "InnerProduct", "bottom": "both", "top": "deep", "fc_param": {"num_output": 2}},
  {"type": "InnerProduct", "bottom": "deep", "top": "score", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"})";

/// Both ranges of the Slice cover all of "fc". "deep" ends with ReLU and dropout. "score" is the only reader of the
/// Concat of "dropout" and "cross".
const char* const kTowers = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 16}},
  {"type": "Slice", "bottom": "fc", "top": ["left", "right"], "ranges": [[0, 16], [0, 16]]},
  {"type": "InnerProduct", "bottom": "left", "top": "deep", "fc_param": {"num_output": 24}},
  {"type": "ReLU", "bottom": "deep", "top": "relu"},
  {"type": "Dropout", "bottom": "relu", "top": "dropout", "rate": 0.5},
  {"type": "MultiCross", "bottom": "right", "top": "cross", "mc_param": {"num_layers": 2}},
  {"type": "Concat", "bottom": ["dropout", "cross"], "top": "both"},
  {"type": "InnerProduct", "bottom": "both", "top": "score", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"})";

/// The vectors and weights of four slots are slices of one tensor. WeightMultiply layers compute the vectors and
/// weights of dense values.
const char* const kMachine = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 11}},
  {"type": "Scale", "bottom": "fc", "top": "slots", "scale_param": {"axis": 1, "factor": 4}},
  {"type": "Slice", "bottom": "slots", "top": ["vectors", "weights"], "ranges": [[0, 10], [10, 11]]},
  {"type": "Reshape", "bottom": "vectors", "top": "key_vectors", "leading_dim": 40},
  {"type": "Reshape", "bottom": "weights", "top": "key_weights", "leading_dim": 4},
  {"type": "WeightMultiply", "bottom": "dense", "top": "dense_vectors", "weight_dims": [3, 10]},
  {"type": "WeightMultiply", "bottom": "dense", "top": "dense_weights", "weight_dims": [3, 1]},
  {"type": "Concat", "bottom": ["key_vectors", "dense_vectors"], "top": "all"},
  {"type": "InnerProduct", "bottom": "all", "top": "deep", "fc_param": {"num_output": 2}},
  {"type": "InnerProduct", "bottom": "deep", "top": "score", "fc_param": {"num_output": 1}},
  {"type": "FmOrder2", "bottom": "all", "top": "fm", "out_dim": 10},
  {"type": "ReduceSum", "bottom": "fm", "top": "second", "axis": 1},
  {"type": "Concat", "bottom": ["key_weights", "dense_weights"], "top": "all_weights"},
  {"type": "ReduceSum", "bottom": "all_weights", "top": "first", "axis": 1},
  {"type": "Add", "bottom": ["score", "second", "first"], "top": "logits"},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["logits", "label"], "top": "loss"})";

struct StepResults {
  float loss = 0;
  std::vector<float> gradients;
};

/// Runs one training step of the graph on a generated batch.
StepResults one_step(const Config& config, const Graph& graph, Device device) {
  Runtime runtime(device, {.threads = 2, .seed = 5});
  SelfComm comm;
  const Weights weights(config, graph, runtime);
  const LayerState layer_state(config, graph, runtime);
  const Network network(graph, Phase::train, weights, layer_state, runtime, comm);
  const Buffer memory(device, 8 * 4 * sizeof(float) + sizeof(StepState));
  const Tensor label(memory.data(), TensorSpec(DType::f32, {8, 1}), device);
  const Tensor dense(memory.data() + 8 * sizeof(float), TensorSpec(DType::f32, {8, 3}), device);
  auto* at = reinterpret_cast<StepState*>(memory.data() + 8 * 4 * sizeof(float));
  write_batch_of_8(runtime.compute_stream(), label, dense, at);
  Context ctx(runtime, runtime.compute_stream(), at);
  const Network::Binding binding = network.bind(label, dense);
  network.forward(ctx, binding);
  network.backward(ctx, binding);
  return {to_host<float>(ctx.stream(), network.loss())[0], to_host<float>(ctx.stream(), weights.all_gradients())};
}

std::vector<std::string> outputs_of(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes) all.push_back(graph.edges[node.out[0]].name);
  return all;
}

TEST(FusedLayers, AreThoseThatAFullyConnectedLayerCanTake) {
  const Config config = config_of(kFusable);
  Graph graph = wired_for_8(config);
  fuse_layers(graph);
  EXPECT_EQ(outputs_of(graph),
            (std::vector<std::string>{"dropout1", "dropout2", "fc3", "relu3", "both", "fc4", "dropout4", "loss"}));
  EXPECT_EQ(graph.losses, std::vector<size_t>{7});
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const TensorId out : graph.nodes[n].out) EXPECT_EQ(graph.edges[out].producer, n);
  const Edge& between = graph.edges[graph.nodes[0].out[0]];
  EXPECT_EQ(between.readers, std::vector<size_t>{1});
}

TEST(FusedLayers, ReadTheInputsOfAConcatThatOneOutputAloneReads) {
  const Config config = config_of(kConcats);
  Graph graph = wired_for_8(config);
  fuse_layers(graph);
  EXPECT_EQ(outputs_of(graph), (std::vector<std::string>{"wide", "narrow", "score", "again", "two_outputs", "each",
                                                         "left", "right", "sum", "loss"}));
  std::vector<std::string> read;
  for (const TensorId in : graph.nodes[2].in) read.push_back(graph.edges[in].name);
  EXPECT_EQ(read, (std::vector<std::string>{"narrow", "dense", "wide"}));
  EXPECT_EQ(graph.edges[graph.nodes[0].out[0]].readers, (std::vector<size_t>{1, 2, 3}));
}

TEST(FusedLayers, CutSlotsIntoColumnsAtOnce) {
  const Config config = config_of(kSlots);
  Graph graph = wired_for_8(config);
  fuse_layers(graph);
  const Node& slice = graph.nodes[2];
  EXPECT_EQ(graph.edges[slice.in[0]].name, "slots");
  ASSERT_EQ(slice.out.size(), 2u);
  EXPECT_EQ(graph.edges[slice.out[0]].name, "row");
  EXPECT_EQ(graph.edges[slice.out[1]].name, "sums");
  EXPECT_EQ(outputs_of(graph), (std::vector<std::string>{"fc", "slots", "row", "all", "fm", "mixed", "again", "kept",
                                                         "both", "deep", "score", "loss"}));
}

TEST(FusedLayers, ReadTheInputOfASliceWhoseRangesAreAllOfIt) {
  const Config config = config_of(kTowers);
  Graph graph = wired_for_8(config);
  fuse_layers(graph);
  EXPECT_EQ(outputs_of(graph), (std::vector<std::string>{"fc", "dropout", "cross", "score", "loss"}));
  EXPECT_EQ(graph.edges[graph.nodes[0].out[0]].readers, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(graph.nodes[2].in, graph.nodes[0].out);
}

TEST(FusedLayers, FinishALayerBelowAConcatThatEndsWithReLU) {
  const Config config = config_of(kTowers);
  Graph graph = wired_for_8(config);
  fuse_layers(graph);
  EXPECT_EQ(graph.nodes[3].finishes, (std::vector<std::optional<size_t>>{1, std::nullopt}));
  EXPECT_TRUE(graph.nodes[1].finishes.empty());  // fc has no ReLU to fuse
}

TEST(FusedLayers, ComputeAFactorizationMachineInOne) {
  const Config config = config_of(kMachine);
  Graph graph = wired_for_8(config);
  fuse_layers(graph);
  EXPECT_EQ(outputs_of(graph), (std::vector<std::string>{"fc", "slots", "dense_vectors", "dense_weights", "all", "deep",
                                                         "score", "logits", "loss"}));
  std::vector<std::string> read, written;
  for (const TensorId in : graph.nodes[4].in) read.push_back(graph.edges[in].name);
  for (const TensorId out : graph.nodes[4].out) written.push_back(graph.edges[out].name);
  EXPECT_EQ(read, (std::vector<std::string>{"slots", "dense_vectors", "dense_weights"}));
  EXPECT_EQ(written, (std::vector<std::string>{"all", "second", "first"}));
}

/// In kTowers, the loss reads the output of the last fully connected layer directly. In kMachine, the loss reads a sum
/// that includes the output of that layer. In both cases the loss runs the layer.
TEST(FusedLayers, AreRunByALossThatReadsTheirLogits) {
  const Config towers = config_of(kTowers), machine = config_of(kMachine);
  Graph graph = wired_for_8(towers);
  fuse_layers(graph);
  ASSERT_TRUE(graph.nodes[4].logit);
  EXPECT_EQ(graph.nodes[4].logit->layer, 3u);
  EXPECT_FALSE(graph.nodes[4].logit->sum);
  EXPECT_TRUE(graph.nodes[3].run_by_loss);
  EXPECT_FALSE(graph.nodes[2].run_by_loss);
  graph = wired_for_8(machine);
  fuse_layers(graph);
  ASSERT_TRUE(graph.nodes[8].logit);
  EXPECT_EQ(graph.nodes[8].logit->layer, 6u);
  EXPECT_EQ(graph.nodes[8].logit->sum, 7u);
  EXPECT_TRUE(graph.nodes[6].run_by_loss && graph.nodes[7].run_by_loss);
  EXPECT_FALSE(graph.nodes[5].run_by_loss);
}

/// A loss cannot run the last layer if dropout is in between, if the layer's output has other readers, or if no input
/// of the layer is trained.
TEST(FusedLayers, RunThemselvesWhereALossCannot) {
  const std::string towers = kTowers;
  const size_t loss = towers.find(R"({"type": "BinaryCrossEntropyLoss")");
  for (const std::string& layers :
       {std::string(kFusable),
        towers.substr(0, loss) + R"({"type": "Dropout", "bottom": "score", "top": "dropped", "rate": 0.5},
          {"type": "BinaryCrossEntropyLoss", "bottom": ["dropped", "label"], "top": "loss"})",
        towers.substr(0, loss) + R"({"type": "Sigmoid", "bottom": "score", "top": "more"},
          {"type": "Add", "bottom": ["score", "more"], "top": "both_scores"},
          {"type": "BinaryCrossEntropyLoss", "bottom": ["both_scores", "label"], "top": "loss"})",
        std::string(R"({"type": "InnerProduct", "bottom": "dense", "top": "score", "fc_param": {"num_output": 1}},
          {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"})")}) {
    const Config config = config_of(layers);
    Graph graph = wired_for_8(config);
    fuse_layers(graph);
    for (const Node& node : graph.nodes) EXPECT_FALSE(node.logit || node.run_by_loss) << layers;
  }
}

/// Training and evaluation share weights by node index, so fusion must not depend on the batch size.
TEST(FusedLayers, AreTheSameForEveryBatch) {
  for (const char* layers : {kFusable, kConcats, kSlots, kTowers, kMachine}) {
    const Config config = config_of(layers);
    Graph eight = wired_for_8(config);
    fuse_layers(eight);
    for (const int64_t samples : {1, 2, 64}) {
      Problems problems;
      Graph other = wire(config, samples, problems);
      fuse_layers(other);
      EXPECT_EQ(outputs_of(other), outputs_of(eight)) << samples;
    }
  }
}

/// If a tensor inside the factorization machine has another reader, the layers stay separate.
TEST(FusedLayers, LeaveAFactorizationMachineWhoseVectorsOthersRead) {
  const std::string layers = kMachine;
  for (const auto& [word, instead] :
       {std::pair(R"("bottom": ["score", "second", "first"])", R"("bottom": ["score", "second", "first", "fm_too"])"),
        std::pair(R"("ranges": [[0, 10], [10, 11]])", R"("ranges": [[1, 11], [10, 11]])")}) {
    std::string changed = layers;
    changed.replace(changed.find(word), std::string(word).size(), instead);
    if (std::string(instead).find("fm_too") != std::string::npos)
      changed.insert(changed.find(R"({"type": "Add")"),
                     R"({"type": "ReduceSum", "bottom": "fm", "top": "fm_too", "axis": 1}, )");
    const Config config = config_of(changed);
    Graph graph = wired_for_8(config);
    fuse_layers(graph);
    const std::vector<std::string> outputs = outputs_of(graph);
    EXPECT_NE(std::find(outputs.begin(), outputs.end(), "fm"), outputs.end()) << instead;
  }
}

struct StepTolerance {
  double loss, gradients;  ///< `loss`: relative to the loss; `gradients`: relative to the largest gradient
};

/// Expects that a step with fused layers equals a step with separate layers. `tolerance(device)` returns a
/// StepTolerance.
template <class Tolerance>
void expect_fused_step(const char* layers, const std::string& precision, const Tolerance& tolerance) {
  const Config config = config_of(layers, 1, precision);
  const Graph alone = wired_for_8(config);
  Graph fused = alone;
  fuse_layers(fused);
  ASSERT_LT(fused.nodes.size(), alone.nodes.size());
  for (const Device device : devices()) {
    SCOPED_TRACE(cat(to_string(device), precision));
    const StepResults expected = one_step(config, alone, device), found = one_step(config, fused, device);
    const StepTolerance may_differ = tolerance(device);
    EXPECT_NEAR(found.loss, expected.loss, may_differ.loss * std::abs(expected.loss));
    ASSERT_EQ(found.gradients.size(), expected.gradients.size());
    double size = 0;
    for (const float g : expected.gradients) size = std::max(size, std::abs(static_cast<double>(g)));
    EXPECT_GT(size, 0);
    for (size_t i = 0; i < found.gradients.size(); ++i)
      ASSERT_NEAR(found.gradients[i], expected.gradients[i], may_differ.gradients * size) << "element " << i;
  }
}

/// Expects equality within rounding: sums over columns are added in another order, and bf16 and fp16 round the results.
void expect_close_step(const char* layers) {
  for (const auto& [precision, tolerance] : {std::pair("", 1e-6), std::pair(R"(, "mixed_precision": "bf16")", 2e-2)})
    expect_fused_step(layers, precision, [both = tolerance](Device) { return StepTolerance{both, both}; });
}

TEST(FusedLayers, ComputeWithoutAConcatWhatTheyComputeWithOne) { expect_close_step(kConcats); }
TEST(FusedLayers, ComputeOfAFactorizationMachineWhatItsLayersCompute) { expect_close_step(kMachine); }
TEST(FusedLayers, ComputeBelowAConcatWhatTheLayersAloneCompute) { expect_close_step(kTowers); }

/// Expects equal bits on a CPU. On a GPU bias gradients are summed in another order.
void expect_same_step(const char* layers) {
  for (const char* precision : {"", R"(, "mixed_precision": "bf16")", R"(, "mixed_precision": "fp16")"})
    expect_fused_step(layers, precision, [](Device device) { return StepTolerance{0, device.is_cuda() ? 1e-6 : 0}; });
}

TEST(FusedLayers, ComputeWhatTheLayersAloneCompute) { expect_same_step(kFusable); }
TEST(FusedLayers, CutSlotsAsSliceAndReshapesDo) { expect_same_step(kSlots); }

}  // namespace
}  // namespace hctr::test
