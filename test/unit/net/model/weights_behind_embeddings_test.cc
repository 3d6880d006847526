// With several ranks, wgrads are complete before they are read. In the backward pass, the wgrads of the last layers
// before the embeddings are computed after the embedding gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/comm/self_comm.h"
#include "net/model/network.h"
#include "support/devices.h"
#include "unit/net/model/planned_layers.h"
#include "unit/net/model/small_model.h"
#include "unit/net/plan/call_order.h"

namespace hctr::test {
namespace {

struct ModelLayers {
  const char *name, *text;
};

/// Models by their last layers before the embeddings: a GEMM after an interaction, a GEMM whose gradient is added to
/// the gradient of a cross layer, and a GEMM that reads embeddings.
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

/// A network in training mode, with one batch and embedding vectors.
struct TrainedLayers {
  TrainedLayers(const Config& config, Device device)
      : graph(fused_graph(config)),
        runtime(device, {.threads = 2, .seed = 5}),
        memory(device, 8 * 9 * sizeof(float) + sizeof(StepState)),
        label(memory.data(), TensorSpec(DType::f32, {8, 1}), device),
        dense(memory.data() + 8 * sizeof(float), TensorSpec(DType::f32, {8, 8}), device),
        weights(config, graph, runtime),
        layer_state(config, graph, runtime),
        network(graph, Phase::train, weights, layer_state, runtime, comm),
        streams(runtime, true) {
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

  /// `read`: selects the nodes after which all complete gradients are read. If it is set, the plan is for two ranks. If
  /// not, the plan is for one rank with a penalty, which reads all gradients.
  StepPlan plan(const Network::Binding& binding, const std::function<bool(size_t)>& read, bool all_products_behind) {
    StepFacts facts = facts_of_layers(graph, binding, runtime);
    facts.ranks = read ? 2 : 1;
    facts.penalty = !read;
    facts.tables[0].sends_by_engines = all_products_behind;
    for (size_t n = 0; read && n < facts.layers.size(); ++n) facts.layers[n].sums_over_ranks = read(n);
    return plan_step(facts);
  }

  /// Runs one step. All gradients are NaN before the step.
  void run(const std::function<bool(size_t)>& read, bool all_products_behind) {
    Context ctx(runtime, runtime.compute_stream(), state());
    const Network::Binding binding = network.bind(label, dense);
    from_host(ctx.stream(), weights.all_gradients(),
              std::vector<float>(static_cast<size_t>(weights.all_gradients().elements()), NAN));
    done.clear(), seen.clear();
    const StepPlan step = plan(binding, read, all_products_behind);
    StepEvents events(step, runtime.device());
    run_layers(step, network, binding, streams, events, ctx, [&](const PlannedCall& call) {
      if (call.part == StepPart::weight_gradients) done.push_back(call.index);
      if (call.part == StepPart::all_reduce_weights) seen.emplace_back(call.index, gradients_from(call.index));
    });
  }

  Graph graph;
  Runtime runtime;
  SelfComm comm;
  Buffer memory;
  Tensor label, dense;
  Weights weights;
  LayerState layer_state;
  Network network;
  StepStreams streams;
  std::vector<size_t> done;  // nodes whose wgrads are queued
  // for each node with a reader, the gradients of this node and of later nodes
  std::vector<std::pair<size_t, std::vector<float>>> seen;
};

TEST(WeightsBehindEmbeddings, AreCompleteWhenTheyAreRead) {
  for (const Device device : devices())
    for (const ModelLayers& model : kModels)
      for (const bool all_behind : {false, true})
        for (const size_t every : {1, 2, 3}) {
          SCOPED_TRACE(cat(model.name, " on ", to_string(device), ", every ", every, all_behind ? ", all behind" : ""));
          const Config config = small_config({}, model.text);
          TrainedLayers trained(config, device);
          trained.run({}, false);
          const std::vector<float> expected = trained.gradients_from(0);
          trained.run([every](size_t node) { return node % every == 0; }, all_behind);
          EXPECT_TRUE(std::ranges::is_sorted(trained.done, std::greater<>())) << "sums of ranges go by this order";
          EXPECT_FALSE(trained.seen.empty());
          for (const auto& [node, gradients] : trained.seen) EXPECT_EQ(gradients, trained.gradients_from(node)) << node;
          const std::vector<float> all = trained.gradients_from(0);
          ASSERT_EQ(all.size(), expected.size());
          for (size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(all[i], expected[i], 1e-6) << i;
        }
}

TEST(WeightsBehindEmbeddings, OfTheLastProductsWaitForEmbeddings) {
  for (const ModelLayers& model : kModels)
    for (const size_t behind : {0, 1, 9}) {
      SCOPED_TRACE(cat(model.name, ", ", behind, " products behind"));
      const Config config = small_config({}, model.text);
      TrainedLayers trained(config, Device{});
      const Network::Binding binding = trained.network.bind(trained.label, trained.dense);
      const std::function<bool(size_t)> read = [](size_t) { return true; };
      const StepPlan plan = trained.plan(binding, behind == 0 ? std::function<bool(size_t)>() : read, behind > 1);
      const CallOrder order(plan);
      const size_t sent = order.calls(StepPart::send_gradients).at(0), reader = plan.facts.first_reader();
      size_t number = 0;  // index of the GEMM, counted from the end of the backward pass
      for (size_t node = reader + 1; node < trained.graph.nodes.size(); ++node) {
        if (!plan.facts.layers[node].matrix_gradient || plan.facts.layers[node].weights_in_backward) continue;
        // In Wide & Deep, only views lie between the embeddings and GEMM 0.
        const bool views_alone = std::string_view(model.name) == "like Wide & Deep" && number == 0;
        EXPECT_EQ(order.calls(StepPart::weight_gradients, node).at(0) > sent, number < behind || views_alone)
            << "product " << number;
        ++number;
      }
    }
}

}  // namespace
}  // namespace hctr::test
