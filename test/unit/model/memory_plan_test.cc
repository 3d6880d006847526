// Which tensors of a network share memory.
#include "model/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tiny_model.h"

namespace hctr::test {
namespace {

TensorId edge_of(const Graph& graph, const std::string& name) {
  const auto at =
      std::find_if(graph.edges.begin(), graph.edges.end(), [&](const Edge& edge) { return edge.name == name; });
  return static_cast<TensorId>(at - graph.edges.begin());
}

/// Add's gradients are one tensor, but for an input that is a view of another layer's output: that one may be summed
/// with others in place.
TEST(MemoryPlan, InputsOfAnAddShareTheGradientOfItsOutput) {
  const Config config = config_of(R"(
    {"type": "InnerProduct", "bottom": "dense", "top": "left", "fc_param": {"num_output": 4}},
    {"type": "InnerProduct", "bottom": "dense", "top": "right", "fc_param": {"num_output": 2}},
    {"type": "InnerProduct", "bottom": "dense", "top": "third", "fc_param": {"num_output": 2}},
    {"type": "Concat", "bottom": ["right", "third"], "top": "view"},
    {"type": "Add", "bottom": ["left", "view"], "top": "sum"},
    {"type": "InnerProduct", "bottom": "sum", "top": "score", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"})");
  const Graph graph = wired_for_8(config);
  const MemoryPlan plan(graph, Phase::train, {});
  const std::byte* const of_sum = plan.gradient(edge_of(graph, "sum")).bytes();
  EXPECT_EQ(plan.gradient(edge_of(graph, "left")).bytes(), of_sum);
  EXPECT_NE(plan.gradient(edge_of(graph, "view")).bytes(), of_sum);
  EXPECT_NE(plan.value(edge_of(graph, "left")).bytes(), plan.value(edge_of(graph, "sum")).bytes());
}

}  // namespace
}  // namespace hctr::test
