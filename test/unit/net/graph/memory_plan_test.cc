// The memory plan of a network: which tensors share memory.
#include "net/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/devices.h"
#include "unit/net/model/small_model.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

TensorId edge_of(const Graph& graph, const std::string& name) {
  const auto at =
      std::find_if(graph.edges.begin(), graph.edges.end(), [&](const Edge& edge) { return edge.name == name; });
  return static_cast<TensorId>(at - graph.edges.begin());
}

/// The input gradients of an Add share one tensor. An input that is a view of another layer's output has its own
/// gradient, because other gradients may be added to it in place.
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

/// Dense values in a batch may have padded rows. A reader that needs another row length gets a copy.
TEST(MemoryPlan, DenseValuesThatAReshapeTakesInOnePieceAreNotReadInTheBatch) {
  const auto are_read_there = [](const std::string& steps) {
    const Config config = config_of(R"(
      {"type": "Reshape", "bottom": "dense", "top": "steps", "leading_dim": 3, "time_step": )" +
                                    steps + R"(},
      {"type": "Reshape", "bottom": "steps", "top": "again", "leading_dim": 3},
      {"type": "Add", "bottom": ["again", "dense"], "top": "sum"},
      {"type": "InnerProduct", "bottom": "sum", "top": "score", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"})");
    const Graph graph = wired_for_8(config);
    return MemoryPlan(graph, Phase::train, {}).is_data(*graph.dense);
  };
  EXPECT_TRUE(are_read_there("1"));
  EXPECT_FALSE(are_read_there("2"));
}

/// Checks the row stride of the dense values that operators receive.
TEST(BatchLayout, PadsRowsOfDenseValuesForAGpu) {
  const auto stride = [](int64_t dense, const std::string& solver, Device device) {
    const Config config =
        small_config({.dense = dense}, R"({"type": "Reshape", "bottom": "vectors", "top": "row", "leading_dim": 16},
          {"type": "Concat", "bottom": ["row", "dense"], "top": "pairs"},)",
                     solver);
    return batch_layout(config, 8, device).dense_stride;
  };
  const std::string tf32 = R"(, "fp32_products": "tf32")", tf32x3 = R"(, "fp32_products": "tf32x3")";
  EXPECT_EQ(stride(13, tf32, kGpu), 16);
  EXPECT_EQ(stride(16, tf32, kGpu), 16);
  EXPECT_EQ(stride(3, tf32, kGpu), 3) << "as rows of other tensors that are shorter than 16 bytes";
  EXPECT_EQ(stride(13, tf32, kCpu), 13);
  EXPECT_EQ(stride(13, tf32x3, kGpu), 13);
  EXPECT_EQ(stride(13, "", kGpu), 16);
  EXPECT_EQ(stride(16, "", kGpu), 16);
  EXPECT_EQ(stride(3, "", kGpu), 3);
  EXPECT_EQ(stride(13, "", kCpu), 13);
  EXPECT_EQ(stride(13, R"(, "mixed_precision": "bf16")", kGpu), 16);
  EXPECT_EQ(stride(17, R"(, "mixed_precision": "bf16")", kGpu), 24);
  EXPECT_EQ(stride(7, R"(, "mixed_precision": "bf16")", kGpu), 7) << "rows of less than 16 bytes";
  EXPECT_EQ(stride(13, R"(, "mixed_precision": "bf16")", kCpu), 13);
}

}  // namespace
}  // namespace hctr::test
