// The CUDA graph of a recorded step has exactly the dependencies of the step plan.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/platform.h"
#include "core/comm/self_comm.h"
#include "core/device/program.h"
#include "core/device/recorded_parts.h"
#include "support/devices.h"
#include "unit/net/model/small_model.h"
#include "unit/net/plan/call_order.h"

namespace hctr::test {
namespace {

constexpr SmallOptions kPlanned{.batch = 1100, .dense = 13, .slots = 5, .dim = 32, .learning_rate = 0.1f};

struct PlannedModel {
  const char *name, *layers, *solver;
};

constexpr const char* kBottomFirst = R"(
    {"type": "InnerProduct", "bottom": "dense", "top": "first", "fc_param": {"num_output": 136}},
    {"type": "ReLU", "bottom": "first", "top": "first_relu"},
    {"type": "InnerProduct", "bottom": "first_relu", "top": "second", "fc_param": {"num_output": 32}},
    {"type": "ReLU", "bottom": "second", "top": "second_relu"},
    {"type": "Interaction", "bottom": ["second_relu", "vectors"], "top": "products"},
    {"type": "InnerProduct", "bottom": "products", "top": "third", "fc_param": {"num_output": 72}},
    {"type": "ReLU", "bottom": "third", "top": "pairs"},)";
constexpr const char* kCrossAside = R"(
    {"type": "Reshape", "bottom": "vectors", "top": "row", "leading_dim": 160},
    {"type": "Concat", "bottom": ["row", "dense"], "top": "features"},
    {"type": "MultiCross", "bottom": "features", "top": "cross", "mc_param": {"num_layers": 2}},
    {"type": "InnerProduct", "bottom": "features", "top": "fc1", "fc_param": {"num_output": 64}},
    {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"type": "InnerProduct", "bottom": "relu1", "top": "fc2", "fc_param": {"num_output": 32}},
    {"type": "ReLU", "bottom": "fc2", "top": "relu2"},
    {"type": "Concat", "bottom": ["cross", "relu2"], "top": "pairs"},)";
constexpr PlannedModel kPlannedModels[] = {
    {"like DLRM in f16", kBottomFirst, R"(, "mixed_precision": 1024)"},
    {"like DLRM in bf16", kBottomFirst, R"(, "mixed_precision": "bf16")"},
    {"like DLRM in TF32", kBottomFirst, R"(, "enable_tf32_compute": true)"},
    {"like DLRM in f32", kBottomFirst, ""},
    {"like DCN in f16", kCrossAside, R"(, "mixed_precision": 1024)"},
    {"like DCN in TF32, skipping", kCrossAside, R"(, "enable_tf32_compute": true, "on_nan": "skip")"},
};

using GraphNode = const void*;

/// The CUDA graph of one step: the nodes of each call in the plan, and the direct and indirect dependencies of each
/// node.
struct RecordedStep {
  std::vector<std::vector<GraphNode>> nodes;  // [call of the plan]
  std::map<GraphNode, std::set<GraphNode>> in_front;
};

void add_in_front(GraphNode node, const std::multimap<GraphNode, GraphNode>& direct, RecordedStep& step) {
  if (step.in_front.contains(node)) return;
  std::set<GraphNode> all;
  const auto [begin, end] = direct.equal_range(node);
  for (auto edge = begin; edge != end; ++edge) {
    add_in_front(edge->second, direct, step);
    all.insert(edge->second);
    all.insert(step.in_front[edge->second].begin(), step.in_front[edge->second].end());
  }
  step.in_front[node] = std::move(all);
}

RecordedStep record_step(SmallModel& small) {
  RecordedStep step;
  if constexpr (kCudaBuild) {
    std::set<GraphNode> known;
    const StepCallbacks callbacks{.queued = [&](const PlannedCall&) {
      std::vector<GraphNode>& own = step.nodes.emplace_back();
      for (const GraphNode node : cuda::recorded_nodes(small.ctx.stream()))
        if (known.insert(node).second) own.push_back(node);
    }};
    const Program program(small.ctx.stream(), true, [&](Recording& recording) {
      small.model.train_step(small.ctx, &recording, 0, small.batch, small.binding, callbacks);
      std::multimap<GraphNode, GraphNode> direct;
      for (const auto& [first, then] : cuda::recorded_edges(small.ctx.stream())) direct.emplace(then, first);
      for (const GraphNode node : known) add_in_front(node, direct, step);
    });
  }
  return step;
}

TEST(RecordedEdges, AreThoseOfThePlan) {
  HCTR_SKIP_WITHOUT_GPU();
  for (const PlannedModel& model : kPlannedModels) {
    SCOPED_TRACE(model.name);
    const Config config = small_config(kPlanned, model.layers, model.solver);
    SelfComm comm;
    SmallModel small(kPlanned, config, kGpu, comm);
    small.set_batch(
        0, [](int64_t i) { return static_cast<float>(i % 2); }, [](int64_t, int64_t) { return 0.5f; },
        [](int64_t i, int64_t slot) { return 100 * slot + i % 37; });
    small.model.reserve_rows(0);
    small.model.prepare(small.ctx, nullptr, 0, small.batch);
    small.model.train_step(small.ctx, nullptr, 0, small.batch, small.binding);  // the first step selects algorithms
    const StepPlan& plan = *small.binding.plan;
    const CallOrder order(plan);
    const RecordedStep step = record_step(small);
    ASSERT_EQ(step.nodes.size(), plan.calls.size());
    size_t compared = 0;
    for (size_t first = 0; first < plan.calls.size(); ++first)
      for (size_t then = first + 1; then < plan.calls.size(); ++then) {
        if (step.nodes[first].empty() || step.nodes[then].empty()) continue;
        const bool waits = step.in_front.at(step.nodes[then].front()).contains(step.nodes[first].back());
        EXPECT_EQ(waits, order.before(first, then))
            << name_of(plan.calls[then].part) << " " << plan.calls[then].index << " behind "
            << name_of(plan.calls[first].part) << " " << plan.calls[first].index;
        ++compared;
      }
    EXPECT_GT(compared, 100u);
  }
}

}  // namespace
}  // namespace hctr::test
