// Facts about layers for a step plan, derived from the layer specs.
#include <gtest/gtest.h>

#include "net/fusion/fuse_layers.h"
#include "net/graph/node_tensors.h"
#include "net/plan/step_facts.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

constexpr Device kPlacedGpu{DeviceKind::cuda, 0};

Tensor placed_tensor(Shape shape) {
  return Tensor(reinterpret_cast<std::byte*>(uintptr_t{1} << 33), TensorSpec(DType::f32, shape), kPlacedGpu);
}

/// The facts of a model as planned for a GPU. The machine that runs the test need not have a GPU.
struct PlacedLayers {
  explicit PlacedLayers(const std::string& layers) : config(config_of(layers)), graph(wired_for_8(config)) {
    fuse_layers(graph);
    MemoryPlan memory(graph, Phase::train);
    memory.place(kPlacedGpu);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      LayerIo& io = calls.emplace_back(
          node_tensors(graph, memory, n, Phase::train, placed_tensor({8, 1}), placed_tensor({8, 3})));
      for (const WeightSpec& weight : graph.nodes[n].spec.weights) {
        io.weights.push_back(placed_tensor(weight.shape));
        io.d_weights.push_back(io.weights.back());
      }
    }
  }
  std::vector<LayerFacts> facts() const { return layer_facts(graph, calls, GpuTraits{}, {}); }

  Config config;
  Graph graph;
  std::vector<LayerIo> calls;
};

const Tensor& operand(const LayerIo& io, const WeightProduct::Operand& of) {
  using In = WeightProduct::Operand::In;
  return (of.in == In::inputs ? io.in : of.in == In::scratch ? io.scratch : io.d_out).at(of.index);
}

/// All widths differ, so a wrong tensor has a wrong shape.
TEST(LayerFacts, ProductsOfWeightsNameTheirOperands) {
  for (const char* const activation : {"Relu", "GELU", "None"})
    for (const bool bias : {true, false}) {
      const PlacedLayers placed(cat(
          R"({"type": "MLP", "bottom": "dense", "top": "mlp", "mlp_param": {"num_outputs": [24, 40, 16], "activation": ")",
          activation, R"(", "use_bias": )", bias ? "true" : "false", R"(}},
          {"type": "InnerProduct", "bottom": "mlp", "top": "score", "fc_param": {"num_output": 1}},
          {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"})"));
      const auto& products = placed.graph.nodes[0].spec.traits.weight_products;
      ASSERT_EQ(products.size(), 3u);
      const int64_t widths[] = {3, 24, 40, 16};
      for (size_t i = 0; i < 3; ++i) {
        SCOPED_TRACE(cat(activation, bias, " stage ", i));
        const LayerIo& io = placed.calls[0];
        EXPECT_EQ(operand(io, products[i].x).shape(), (Shape{8, widths[i]}));
        EXPECT_EQ(operand(io, products[i].d_y).shape(), (Shape{8, widths[i + 1]}));
        EXPECT_EQ(io.d_weights.at(products[i].weight).shape(), (Shape{widths[i], widths[i + 1]}));
        EXPECT_EQ(products[i].in_backward, i > 0);
      }
      EXPECT_TRUE(placed.graph.nodes[1].spec.traits.weight_products.empty()) << "one output is a sum of columns";
      EXPECT_TRUE(placed.facts()[1].weights_in_backward);
      EXPECT_EQ(placed.facts()[0].grouped_in_backward, 2u);
    }
}

TEST(LayerFacts, CrossLayersOfVectorsRunAsideUntilTheirReader) {
  const PlacedLayers placed(R"(
      {"type": "InnerProduct", "bottom": "dense", "top": "features", "fc_param": {"num_output": 16}},
      {"type": "MultiCross", "bottom": "features", "top": "cross", "mc_param": {"num_layers": 2}},
      {"type": "InnerProduct", "bottom": "features", "top": "fc1", "fc_param": {"num_output": 32}},
      {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
      {"type": "InnerProduct", "bottom": "relu1", "top": "fc2", "fc_param": {"num_output": 8}},
      {"type": "Concat", "bottom": ["cross", "fc2"], "top": "both"},
      {"type": "InnerProduct", "bottom": "both", "top": "score", "fc_param": {"num_output": 2}},
      {"type": "InnerProduct", "bottom": "score", "top": "logit", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"})");
  const std::vector<LayerFacts> facts = placed.facts();
  ASSERT_EQ(facts[1].name, "cross");
  EXPECT_EQ(facts[1].concurrent_until, 4u) << "the Concat";
  for (const size_t n : {0u, 2u, 3u, 4u}) EXPECT_FALSE(facts[n].concurrent_until) << facts[n].name;
  EXPECT_TRUE(facts[2].fused_relu) << "which fc2 finishes";
  EXPECT_FALSE(facts[3].fused_relu);
}

}  // namespace
}  // namespace hctr::test
