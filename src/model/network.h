// The dense layers of one replica in one phase, bound to memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/graph.h"
#include "model/memory_plan.h"
#include "model/weights.h"

namespace hctr {

class Network {
 public:
  /// `graph` and `weights` outlive it.
  Network(const Graph& graph, Phase, const Weights& weights, Runtime&);

  /// The calls of all layers for a batch that lies at these addresses. Several bindings share activations.
  struct Binding {
    std::vector<LayerIo> calls;  // one per node
  };
  Binding bind(Tensor label, std::optional<Tensor> dense) const;

  void forward(Context&, const Binding&) const;
  /// From the loss back to weights and embeddings. Needs Phase::train.
  void backward(Context&, const Binding&) const;

  Tensor embedding_output(size_t embedding) const { return memory_.value(graph_.embeddings[embedding]); }
  Tensor embedding_gradient(size_t embedding) const { return memory_.gradient(graph_.embeddings[embedding]); }
  Tensor loss() const { return memory_.value(graph_.nodes[graph_.loss].out[0]); }
  Tensor prediction() const { return memory_.value(graph_.nodes[graph_.loss].out[1]); }
  LossLayer::Regularizer regularizer() const;
  size_t activation_bytes() const { return memory_.bytes(); }

 private:
  void sum_gradients(Context&, TensorId) const;

  const Graph& graph_;
  Phase phase_;
  const Weights& weights_;
  MemoryPlan memory_;
  std::vector<std::vector<Tensor>> contributions_;  // [edge]: what its gradient is the sum of; empty for at most one
};

}  // namespace hctr
