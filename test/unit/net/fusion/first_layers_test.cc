// Layers that can overlap the embedding lookup: layers with weights before the first reader of an embedding.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "core/comm/self_comm.h"
#include "net/model/network.h"
#include "unit/net/model/planned_layers.h"
#include "unit/net/model/small_model.h"

namespace hctr::test {
namespace {

std::vector<std::string> running_order(const std::string& layers) {
  const Config config = small_config({}, layers);
  const Graph graph = fused_graph(config);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(graph.edges[node.out[0]].name);
  return names;
}

struct FirstLayersOf {
  bool compute = false, have_relu = false;
};

FirstLayersOf first_layers(const std::string& layers) {
  const Config config = small_config({}, layers);
  const Graph graph = fused_graph(config);
  Runtime runtime(Device{}, {.seed = 5});
  SelfComm comm;
  const Weights weights(config, graph, runtime);
  const LayerState state(config, graph, runtime);
  const Network network(graph, Phase::train, weights, state, runtime, comm);
  const Buffer memory(Device{}, 8 * 9 * sizeof(float));
  const Tensor label(memory.data(), TensorSpec(DType::f32, {8, 1}), Device{});
  const Tensor dense(memory.data() + 8 * sizeof(float), TensorSpec(DType::f32, {8, 8}), Device{});
  const StepFacts facts = facts_of_layers(graph, network.bind(label, dense), runtime);
  const auto before = std::span(facts.layers).first(facts.first_reader());
  return {facts.computes_before_embeddings(), std::ranges::any_of(before, &LayerFacts::fused_relu)};
}

bool computes_before_embeddings(const std::string& layers) { return first_layers(layers).compute; }

const std::string kBottom =
    R"({"type": "InnerProduct", "bottom": "dense", "top": "bottom", "fc_param": {"num_output": 8}},
      {"type": "ReLU", "bottom": "bottom", "top": "bottom_relu"},)";

TEST(FirstLayers, OfDenseValuesComputeBeforeAnEmbeddingIsRead) {
  EXPECT_TRUE(computes_before_embeddings(
      kBottom + R"({"type": "Interaction", "bottom": ["bottom_relu", "vectors"], "top": "pairs"},)"));
}

TEST(FirstLayers, RunBeforeThoseThatStandBeforeThemAndReadAnEmbedding) {
  EXPECT_TRUE(
      computes_before_embeddings(R"({"type": "Reshape", "bottom": "vectors", "top": "row", "leading_dim": 16},)" +
                                 kBottom + R"({"type": "Concat", "bottom": ["row", "bottom_relu"], "top": "pairs"},)"));
}

/// Only one of the three readers of bottom_relu needs an embedding.
TEST(FirstLayers, StayWhereTheyAreWhenThreeGradientsWouldBeSummedInAnotherOrder) {
  const std::string readers = R"({"type": "Interaction", "bottom": ["bottom_relu", "vectors"], "top": "first"},
      {"type": "InnerProduct", "bottom": "bottom_relu", "top": "second", "fc_param": {"num_output": 4}},
      {"type": "InnerProduct", "bottom": "bottom_relu", "top": "third", "fc_param": {"num_output": 4}},
      {"type": "Concat", "bottom": ["first", "second", "third"], "top": "pairs"},)";
  EXPECT_EQ(running_order(kBottom + readers),
            (std::vector<std::string>{"bottom_relu", "first", "second", "third", "logit", "loss"}));
  const std::string two = R"({"type": "Interaction", "bottom": ["bottom_relu", "vectors"], "top": "first"},
      {"type": "InnerProduct", "bottom": "bottom_relu", "top": "second", "fc_param": {"num_output": 4}},
      {"type": "Concat", "bottom": ["first", "second"], "top": "pairs"},)";
  EXPECT_EQ(running_order(kBottom + two),
            (std::vector<std::string>{"bottom_relu", "second", "first", "logit", "loss"}));
}

TEST(FirstLayers, ThatEndWithReLUAreFinishedByTheInteraction) {
  const std::string interaction = R"({"type": "Interaction", "bottom": ["bottom_relu", "vectors"], "top": "pairs"},)";
  EXPECT_TRUE(first_layers(kBottom + interaction).have_relu);
  const FirstLayersOf others = first_layers(
      R"({"type": "InnerProduct", "bottom": "dense", "top": "bottom", "fc_param": {"num_output": 8}},
      {"type": "Tanh", "bottom": "bottom", "top": "bottom_relu"},)" +
      interaction);
  EXPECT_TRUE(others.compute);
  EXPECT_FALSE(others.have_relu);
}

TEST(FirstLayers, ThatReadAnEmbeddingComputeNothingBefore) {
  EXPECT_FALSE(
      computes_before_embeddings(R"({"type": "Interaction", "bottom": ["dense", "vectors"], "top": "pairs"},)"));
}

TEST(FirstLayers, WithALossOfTheirOwnDoNotCount) {
  EXPECT_FALSE(computes_before_embeddings(kBottom + R"(
      {"type": "InnerProduct", "bottom": "bottom_relu", "top": "first", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["first", "label"], "top": "early"},
      {"type": "Interaction", "bottom": ["bottom_relu", "vectors"], "top": "pairs"},)"))
      << "a loss must not come before what the lookups' stream does for it";
}

}  // namespace
}  // namespace hctr::test
