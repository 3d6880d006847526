// Several ranks: wgrads are complete when they are read, and those of the last layers before the embeddings follow the
// embedding gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/comm/self_comm.h"
#include "net/model/network.h"
#include "support/devices.h"
#include "unit/net/model/small_model.h"

namespace hctr::test {
namespace {

struct ModelLayers {
  const char *name, *text;
};

/// Their last layers in front of embeddings are a product after an interaction, one whose gradient is added to that of
/// a cross layer, and one that reads embeddings itself.
constexpr ModelLayers kModels[] = {{"like DLRM", R"(
    {"type": "InnerProduct", "bottom": "dense", "top": "fc", "fc_param": {"num_output": 8}},
    {"type": "ReLU", "bottom": "fc", "top": "relu"},
    {"type": "Interaction", "bottom": ["relu", "vectors"], "top": "interaction"},
    {"type": "MLP", "bottom": "interaction", "top": "pairs", "mlp_param": {"num_outputs": [32, 16]}},)"},
                                   {"like DCN", R"(
    {"type": "Reshape", "bottom": "vectors", "top": "row", "leading_dim": 16},
    {"type": "Concat", "bottom": ["row", "dense"], "top": "features"},
    {"type": "MultiCross", "bottom": "features", "top": "cross", "mc_param": {"num_layers": 2}},
    {"type": "InnerProduct", "bottom": "features", "top": "fc1", "fc_param": {"num_output": 32}},
    {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"type": "InnerProduct", "bottom": "relu1", "top": "fc2", "fc_param": {"num_output": 16}},
    {"type": "ReLU", "bottom": "fc2", "top": "relu2"},
    {"type": "Concat", "bottom": ["cross", "relu2"], "top": "pairs"},)"},
                                   {"like Wide & Deep", R"(
    {"type": "Reshape", "bottom": "vectors", "top": "row", "leading_dim": 16},
    {"type": "Concat", "bottom": ["row", "dense"], "top": "features"},
    {"type": "InnerProduct", "bottom": "features", "top": "fc1", "fc_param": {"num_output": 32}},
    {"type": "ReLU", "bottom": "fc1", "top": "pairs"},)"}};

/// A network in training, with one batch and vectors of an embedding.
struct TrainedLayers {
  TrainedLayers(const Config& config, Device device)
      : graph(fused_graph(config)),
        runtime(device, {.threads = 2, .seed = 5}),
        memory(device, 8 * 9 * sizeof(float) + sizeof(StepState)),
        label(memory.data(), TensorSpec(DType::f32, {8, 1}), device),
        dense(memory.data() + 8 * sizeof(float), TensorSpec(DType::f32, {8, 8}), device),
        weights(config, graph, runtime),
        layer_state(config, graph, runtime),
        network(graph, Phase::train, weights, layer_state, runtime, comm) {
    std::mt19937_64 random(3);
    const auto fill = [&](const Tensor& tensor) {
      std::vector<float> values;
      for (int64_t i = 0; i < tensor.elements(); ++i)
        values.push_back(symmetric_float(static_cast<uint32_t>(random()), 1));
      from_host(runtime.compute_stream(), tensor, values);
    };
    fill(dense);
    fill(network.embedding_output(0));
    from_host(runtime.compute_stream(), label, std::vector<float>{0, 1, 1, 0, 1, 0, 0, 1});
    const StepState step{.step = 3, .valid_samples = 8, .global_samples = 8, .learning_rate = 1, .loss_scale = 1};
    copy_bytes(runtime.compute_stream(), state(), &step, sizeof step);
    runtime.compute_stream().synchronize();
  }
  StepState* state() { return reinterpret_cast<StepState*>(memory.data() + 8 * 9 * sizeof(float)); }

  std::vector<float> gradients_from(size_t node) {
    std::vector<float> all;
    for (size_t n = node; n < graph.nodes.size(); ++n)
      for (const Tensor& gradient : weights.gradients_of_node(n)) {
        const auto values = to_host<float>(runtime.compute_stream(), gradient);
        all.insert(all.end(), values.begin(), values.end());
      }
    return all;
  }

  /// One step. Every gradient is NaN before it. `read`: nodes whose finished gradients are read at once.
  void run(const std::function<bool(size_t)>& read, size_t products_behind) {
    Context ctx(runtime, runtime.compute_stream(), state());
    const Network::Binding binding = network.bind(label, dense);
    from_host(ctx.stream(), weights.all_gradients(),
              std::vector<float>(static_cast<size_t>(weights.all_gradients().elements()), NAN));
    inputs.clear(), done.clear(), seen.clear();
    network.forward(ctx, binding);
    network.backward(ctx, binding,
                     {.inputs = [&](size_t node) { inputs.push_back({node, done.size()}); },
                      .weights =
                          [&](size_t node) {
                            done.push_back(node);
                            if (read(node)) seen.emplace_back(node, gradients_from(node));
                          },
                      .weights_reads = read,
                      .products_behind_embeddings = products_behind});
  }

  Graph graph;
  Runtime runtime;
  SelfComm comm;
  Buffer memory;
  Tensor label, dense;
  Weights weights;
  LayerState layer_state;
  Network network;
  std::vector<std::pair<size_t, size_t>> inputs;            // nodes, and how many were done by then
  std::vector<size_t> done;                                 // nodes whose wgrads are queued
  std::vector<std::pair<size_t, std::vector<float>>> seen;  // what was read of a node and those after it
};

TEST(WeightsBehindEmbeddings, AreCompleteWhenTheyAreRead) {
  for (const Device device : devices())
    for (const ModelLayers& model : kModels)
      for (const size_t behind : {0, 1, 2, 9})
        for (const size_t every : {1, 2, 3}) {
          SCOPED_TRACE(cat(model.name, " on ", to_string(device), ", every ", every, ", ", behind, " products behind"));
          const Config config = small_config({}, model.text);
          TrainedLayers trained(config, device);
          trained.run([](size_t) { return true; }, 0);
          const std::vector<float> expected = trained.gradients_from(0);
          trained.run([every](size_t node) { return node % every == 0; }, behind);
          EXPECT_TRUE(std::ranges::is_sorted(trained.done, std::greater<>())) << "sums of ranges go by this order";
          EXPECT_EQ(trained.done.size(), trained.graph.nodes.size());
          for (const auto& [node, gradients] : trained.seen) EXPECT_EQ(gradients, trained.gradients_from(node)) << node;
          const std::vector<float> all = trained.gradients_from(0);
          ASSERT_EQ(all.size(), expected.size());
          for (size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(all[i], expected[i], 1e-6) << i;
        }
}

TEST(WeightsBehindEmbeddings, OfTheLastProductsWaitForEmbeddings) {
  for (const ModelLayers& model : kModels)
    for (const size_t behind : {0, 1, 2}) {
      SCOPED_TRACE(cat(model.name, ", ", behind, " products behind"));
      const Config config = small_config({}, model.text);
      TrainedLayers trained(config, Device{});
      trained.run([](size_t) { return true; }, behind);
      const size_t reader = trained.network.first_reader();
      const auto is_product = [&](size_t node) {
        return std::ranges::any_of(trained.weights.gradients_of_node(node), [](const Tensor& gradient) {
          return gradient.rows() > 1 && gradient.row_elements() > 1;
        });
      };
      const auto at = std::ranges::find(trained.inputs, reader, &std::pair<size_t, size_t>::first);
      const size_t done_then = at->second;
      size_t number = 0;  // of the product, from that which comes last
      for (size_t node = reader + 1; node < trained.graph.nodes.size(); ++node) {
        if (!is_product(node)) continue;
        const auto done = static_cast<size_t>(std::ranges::find(trained.done, node) - trained.done.begin());
        ASSERT_LT(done, trained.done.size());
        const bool views_alone = std::string_view(model.name) == "like Wide & Deep" && number == 0;  // between them
        EXPECT_EQ(done_then <= done, number < behind || views_alone) << "product " << number;
        ++number;
      }
    }
}

}  // namespace
}  // namespace hctr::test
