// Three schedules of wgrads: inline, deferred to the end of the backward pass, or on a side stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/device/program.h"
#include "net/fusion/fuse_layers.h"
#include "ops/gemm/linear.h"
#include "support/devices.h"
#include "unit/net/model/planned_layers.h"
#include "unit/net/model/tiny_model.h"

namespace hctr::test {
namespace {

/// A model with several branches and an MLP. The wgrads of two branches end with partial sums over rows. All stages of
/// the MLP except the first compute their wgrads inside the layer.
const char* const kStackedLayers = R"(
  {"type": "InnerProduct", "bottom": "dense", "top": "fc1", "fc_param": {"num_output": 72}},
  {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
  {"type": "InnerProduct", "bottom": "relu1", "top": "fc2", "fc_param": {"num_output": 200}},
  {"type": "ReLU", "bottom": "fc2", "top": "relu2"},
  {"type": "InnerProduct", "bottom": "relu1", "top": "linear", "fc_param": {"num_output": 40}},
  {"type": "MultiCross", "bottom": "linear", "top": "cross", "mc_param": {"num_layers": 2}},
  {"type": "WeightMultiply", "bottom": "dense", "top": "products", "weight_dims": [3, 8]},
  {"type": "WeightMultiply", "bottom": "dense", "top": "more", "weight_dims": [3, 1]},
  {"type": "Concat", "bottom": ["relu2", "cross", "products", "more"], "top": "both"},
  {"type": "MLP", "bottom": "both", "top": "mlp", "mlp_param": {"num_outputs": [64, 32, 16]}},
  {"type": "InnerProduct", "bottom": "mlp", "top": "score", "fc_param": {"num_output": 1}},
  {"type": "BinaryCrossEntropyLoss", "bottom": ["score", "label"], "top": "loss"})";

/// A network in training mode with one batch.
struct Trained {
  Trained(const Config& config, Device device)
      : graph(wired_for_8(config)),
        runtime(device, {.threads = 2, .seed = 5}),
        streams(runtime, false),
        memory(device, 8 * 4 * sizeof(float) + sizeof(StepState)),
        label(memory.data(), TensorSpec(DType::f32, {8, 1}), device),
        dense(memory.data() + 8 * sizeof(float), TensorSpec(DType::f32, {8, 3}), device) {
    fuse_layers(graph);
    weights.emplace(config, graph, runtime);
    layer_state.emplace(config, graph, runtime);
    network.emplace(graph, Phase::train, *weights, *layer_state, runtime, comm);
    Context of_side = streams.on(StepStream::weights, Context(runtime, runtime.compute_stream()));
    ops::add_product_stream(of_side);
    write_batch_of_8(runtime.compute_stream(), label, dense, state());
  }
  StepState* state() { return reinterpret_cast<StepState*>(memory.data() + 8 * 4 * sizeof(float)); }

  /// Returns all gradients after two steps. `read_at_once`: each gradient is read as soon as it is complete, and no
  /// layers run concurrently.
  std::vector<float> gradients(bool read_at_once, bool recorded) {
    Context ctx(runtime, runtime.compute_stream(), state());
    const Network::Binding binding = network->bind(label, dense);
    from_host(ctx.stream(), weights->all_gradients(),
              std::vector<float>(static_cast<size_t>(weights->all_gradients().elements()), NAN));
    StepFacts facts = facts_of_layers(graph, binding, runtime);
    facts.tensor_cores = !read_at_once;
    facts.penalty = read_at_once;
    const StepPlan plan = plan_step(facts);
    StepEvents events(plan, runtime.device());
    const auto step = [&] { run_layers(plan, *network, binding, streams, events, ctx); };
    // The first step selects algorithms, which is not allowed during a graph capture.
    step();
    Program program(ctx.stream(), recorded, step);
    program.run();
    std::vector<float> all;
    for (size_t n = 0; n < graph.nodes.size(); ++n)  // omits the padding between gradients
      for (const Tensor& gradient : weights->gradients_of_node(n)) {
        const auto values = to_host<float>(ctx.stream(), gradient);
        all.insert(all.end(), values.begin(), values.end());
      }
    return all;
  }

  Graph graph;
  Runtime runtime;
  SelfComm comm;
  StepStreams streams;
  Buffer memory;
  Tensor label, dense;
  std::optional<Weights> weights;
  std::optional<LayerState> layer_state;
  std::optional<Network> network;
};

void expect_close(const std::vector<float>& gradients, const std::vector<float>& expected) {
  ASSERT_EQ(gradients.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(gradients[i], expected[i], 1e-6) << i;
}

/// On a GPU the kernel for all deferred wgrads may sum in another order than separate GEMMs.
TEST(WeightGradients, AreTheSameWhetherSomebodyReadsThemAtOnceOrNobodyDoes) {
  const Config config = config_of(kStackedLayers);
  for (const Device device : devices()) {
    Trained model(config, device);
    const std::vector<float> at_once = model.gradients(true, false);
    EXPECT_TRUE(std::none_of(at_once.begin(), at_once.end(), [](float g) { return std::isnan(g); }));
    std::vector<float> before;
    for (const bool recorded : {false, true}) {
      SCOPED_TRACE(cat(to_string(device), recorded ? ", recorded" : ""));
      const std::vector<float> at_the_end = model.gradients(false, recorded);
      if (device.is_cuda())
        expect_close(at_the_end, at_once);
      else
        EXPECT_EQ(at_the_end, at_once);
      if (recorded) {
        EXPECT_EQ(at_the_end, before);
      }
      before = at_the_end;
    }
  }
}

TEST(WeightGradients, OfTwoByteTypesAreTheSameEveryTimeAndCloseToThoseReadAtOnce) {
  for (const char* precision : {"1024", "\"bf16\""}) {
    const Config config = config_of(kStackedLayers, 1, cat(", \"mixed_precision\": ", precision));
    for (const Device device : devices()) {
      Trained model(config, device);
      const std::vector<float> at_once = model.gradients(true, false), at_the_end = model.gradients(false, false);
      EXPECT_EQ(model.gradients(false, true), at_the_end) << to_string(device);
      SCOPED_TRACE(cat(to_string(device), " ", precision));
      expect_close(at_the_end, at_once);
    }
  }
}

/// Removes some gradients and their padding from the range of all gradients. The remaining parts must contain each of
/// the other elements exactly once.
TEST(WeightGradients, OfAllButSomeAreTheOtherParts) {
  const Trained model(config_of(kStackedLayers), Device{});
  std::vector<Tensor> gradients;
  for (size_t n = 0; n < model.graph.nodes.size(); ++n)
    for (const Tensor& gradient : model.weights->gradients_of_node(n)) gradients.push_back(gradient);
  const Tensor all = model.weights->all_gradients();
  for (const size_t every : {1, 2, 3, 1000}) {
    std::vector<Tensor> some;
    for (size_t i = 0; i < gradients.size(); i += every) some.push_back(gradients[i]);
    std::vector<int> times(static_cast<size_t>(all.elements()));
    const auto count = [&](const Tensor& part) {
      for (int64_t row = 0; row < part.rows(); ++row)
        for (int64_t e = 0; e < part.row_elements(); ++e)
          ++times[static_cast<size_t>(part.data<float>() + row * part.row_stride() + e - all.data<float>())];
    };
    for (const Tensor& part : model.weights->gradients_without(some)) count(part);
    for (const Tensor& gradient : gradients) {
      const auto first = static_cast<size_t>(gradient.data<float>() - all.data<float>());
      const bool left_out = std::any_of(some.begin(), some.end(),
                                        [&](const Tensor& one) { return one.data<float>() == gradient.data<float>(); });
      EXPECT_EQ(times[first], left_out ? 0 : 1) << every;
    }
    for (const Tensor& gradient : some) count(gradient);
    for (const Tensor& gradient : gradients)
      for (int64_t row = 0; row < gradient.rows(); ++row)
        for (int64_t e = 0; e < gradient.row_elements(); ++e)
          ASSERT_EQ(
              times[static_cast<size_t>(gradient.data<float>() + row * gradient.row_stride() + e - all.data<float>())],
              1);
  }
}

}  // namespace
}  // namespace hctr::test
