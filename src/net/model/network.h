// The dense layers of one replica in one phase, bound to memory.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/graph/fp8_scales.h"
#include "net/graph/graph.h"
#include "net/graph/memory_plan.h"
#include "net/model/gradient_exchange.h"
#include "net/model/layer_state.h"
#include "net/model/weights.h"

namespace hctr {

class Network {
 public:
  /// The arguments must outlive the network. `gradients` (may be null): the all-reduces that may be in progress on the
  /// communicator.
  Network(const Graph& graph, Phase, const Weights& weights, const LayerState& state, Runtime&, Communicator&,
          GradientExchange* gradients = nullptr);

  /// The tensors of all layer calls, for a batch at fixed addresses. All bindings of a network share the memory of
  /// activations.
  struct Binding {
    std::vector<LayerIo> calls;  // one per node
    // dense values to copy to the plan's memory; none if layers read the values in place
    std::optional<Tensor> dense;
    bool weights_are_fixed = false;  // true: forward() does not write the transposed copies again
  };
  /// `search`: overflow check for layers that check the gradient of an embedding. `of_operands`: whether layers also
  /// check operands of deferred wgrads. `scales`: for layers with FP8 GEMMs; null if the graph has no FP8 GEMM.
  Binding bind(Tensor label, std::optional<Tensor> dense, ops::OverflowSearch search = {}, bool of_operands = false,
               const Fp8Scales* scales = nullptr) const;
  /// Writes the transposed copies of weights that layers read. If weights do not change, forward() can skip these
  /// copies.
  void write_weight_copies(Context& ctx, const Binding& binding) const {
    write_weight_copies(ctx, binding, 0, graph_.nodes.size());
  }
  /// Whether a layer checks the gradient of this embedding for overflow while writing it, provided bind() received a
  /// `search`.
  bool searches_overflow(size_t embedding) const { return searched_by_[embedding].has_value(); }

  /// The whole forward pass on one stream. First writes the transposed copies of weights, because weights may have
  /// changed.
  void forward(Context&, const Binding&) const;
  /// The whole backward pass, from the loss to weights and embeddings, on one stream. Needs Phase::train.
  void backward(Context&, const Binding&) const;

  // The parts of forward() and backward() that the step plan calls (net/model/step_layers.h).
  void convert_dense(Context&, const Binding&) const;
  /// Writes the transposed copies of the weights of the nodes [begin, end).
  void write_weight_copies(Context&, const Binding&, size_t begin, size_t end) const;
  void forward_node(Context&, const Binding&, size_t node) const;
  void sum_losses(Context&) const;
  void backward_node(Context&, const Binding&, size_t node) const;
  /// Sums the contributions of all layers to the gradient of an embedding.
  void sum_contributions(Context&, size_t embedding) const;
  /// Does nothing if backward_node() has written the wgrads. `bytes`: for profiling.
  void backward_weights(Context&, const Binding&, size_t node, double bytes) const;
  Tensor embedding_output(size_t embedding) const { return memory_.value(graph_.embeddings[embedding]); }
  std::optional<Tensor> embedding_lengths(size_t embedding) const {
    return graph_.lengths[embedding] ? std::optional(memory_.value(*graph_.lengths[embedding])) : std::nullopt;
  }
  Tensor embedding_gradient(size_t embedding) const { return memory_.gradient(graph_.embeddings[embedding]); }
  /// The weighted sum of all losses, [1]. If the only loss has weight 1, this tensor is that loss itself.
  Tensor loss() const;
  /// The prediction of the first loss.
  Tensor prediction() const { return predictions()[0]; }
  /// The unweighted value and the prediction of each loss, in the order of the config.
  std::vector<Tensor> losses() const { return outputs_of_losses(0); }
  std::vector<Tensor> predictions() const { return outputs_of_losses(1); }
  /// The label of each loss in a bound batch.
  std::vector<Tensor> labels(const Binding&) const;
  /// The distinct regularizers of the losses.
  std::vector<LossLayer::Regularizer> regularizers() const;
  /// Whether the model needs sum_losses().
  bool sums_losses() const { return total_.has_value(); }
  size_t activation_bytes() const { return memory_.bytes(); }

 private:
  void sum_gradients(Context&, TensorId) const;
  /// The value of LayerIo::logit for a loss that runs `nodes`. `nodes` must already be bound.
  LogitIo logit_io(const Binding&, const Node::LogitNodes&) const;
  /// Whether the loss that runs after the node also does the node's work.
  bool is_run_by_loss(size_t node) const { return phase_ == Phase::train && graph_.nodes[node].run_by_loss; }
  std::vector<Tensor> outputs_of_losses(size_t output) const;
  const LossLayer& loss_layer(size_t loss) const;

  const Graph& graph_;
  Phase phase_;
  const Weights& weights_;
  const LayerState& state_;
  Communicator& comm_;
  GradientExchange* gradients_;
  MemoryPlan memory_;
  std::optional<Arena> total_;  // the sum of losses; none if there is a single loss of weight 1
  // [embedding] the node that checks the embedding's gradient for overflow
  std::vector<std::optional<size_t>> searched_by_;
  // [edge] the summands of the tensor's gradient; empty for fewer than two summands
  std::vector<std::vector<Tensor>> contributions_;
};

}  // namespace hctr
