// Runs only the layers of a planned step, without tables, an optimizer and other ranks.
#pragma once

#include <functional>

#include "core/device/gpu_traits.h"
#include "net/model/step_layers.h"
#include "net/model/step_streams.h"

namespace hctr::test {

/// The step facts that are needed to plan the layers. A test may set more facts.
inline StepFacts facts_of_layers(const Graph& graph, const Network::Binding& binding, const Runtime& runtime) {
  StepFacts facts{.gpu = gpu_traits(runtime.device())};
  facts.copies_dense = binding.dense.has_value();
  facts.layers = layer_facts(graph, binding.calls, facts.gpu, runtime.options());
  for (size_t e = 0; e < graph.embeddings.size(); ++e) facts.tables.push_back({.name = "table"});
  return facts;
}

/// Queues the layer and event calls of a plan. `queued` is called after every call of the plan, also after calls of
/// other kinds, which are skipped.
inline void run_layers(const StepPlan& plan, const Network& network, const Network::Binding& binding,
                       const StepStreams& streams, StepEvents& events, Context& ctx,
                       const std::function<void(const PlannedCall&)>& queued = {}) {
  StepLayers layers(network, binding, ctx);
  for (const PlannedCall& call : plan.calls) {
    Context own = streams.on(call.stream, ctx);
    if (!events.run(own, call)) layers.run(own, call);
    if (queued) queued(call);
  }
}

}  // namespace hctr::test
