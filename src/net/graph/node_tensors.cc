#include "net/graph/node_tensors.h"

namespace hctr {

LayerIo node_tensors(const Graph& graph, const MemoryPlan& memory, size_t n, Phase phase, const Tensor& label,
                     const std::optional<Tensor>& dense) {
  const Node& node = graph.nodes[n];
  LayerIo io;
  for (const TensorId in : node.in)
    io.in.push_back(in == graph.label ? label : graph.dense == in && dense ? *dense : memory.value(in));
  for (const TensorId out : node.out) io.out.push_back(memory.value(out));
  for (size_t s = 0; s < node.spec.scratch.size(); ++s) io.scratch.push_back(memory.scratch(n, s));
  io.transient = memory.transient(n);
  if (phase != Phase::train) return io;
  for (size_t i = 0; i < node.in.size(); ++i) io.d_in.push_back(memory.contribution(n, i));
  for (const TensorId out : node.out)
    if (memory.has_gradient(out)) io.d_out.push_back(memory.gradient(out));
  return io;
}

}  // namespace hctr
