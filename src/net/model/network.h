// The dense layers of one replica in one phase, bound to memory.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/device/lockstep.h"
#include "net/graph/fp8_scales.h"
#include "net/graph/graph.h"
#include "net/graph/memory_plan.h"
#include "net/model/gradient_exchange.h"
#include "net/model/layer_state.h"
#include "net/model/side_stream.h"
#include "net/model/weights.h"

namespace hctr {

class Network {
 public:
  /// The arguments outlive it. `gradients` (may be null): all-reduces that may be in progress on the communicator.
  Network(const Graph& graph, Phase, const Weights& weights, const LayerState& state, Runtime&, Communicator&,
          GradientExchange* gradients = nullptr);

  /// The calls of all layers for a batch that lies at these addresses. Several bindings share activations.
  struct Binding {
    std::vector<LayerIo> calls;      // one per node
    std::optional<Tensor> dense;     // to be copied to memory of the plan; none where layers read them where they are
    bool weights_are_fixed = false;  // forward() writes no transposed copies of weights
  };
  /// `search`: for overflow, by the layers that search the gradient of an embedding themselves. `of_operands`: also by
  /// those that search operands of late products. `scales`: of the layers with products in FP8; null if the graph has
  /// none.
  Binding bind(Tensor label, std::optional<Tensor> dense, ops::OverflowSearch search = {}, bool of_operands = false,
               const Fp8Scales* scales = nullptr) const;
  /// Writes the transposed copies of weights that layers read. Weights that do not change then need none in forward().
  void write_weight_copies(Context&, const Binding&) const;
  /// Whether a layer searches the gradient of this embedding for overflow as it writes it, if bind() was given a
  /// search.
  bool searches_overflow(size_t embedding) const { return searched_by_[embedding].has_value(); }

  /// Writes transposed copies of weights, for a forward() with `beside`, so that look-ups which are queued next run
  /// beside: those of layers before any that reads an embedding, or, if there are none, all, on `beside`.
  void before_lookup(Context&, const Binding&, SideStream& beside) const;
  /// First writes the transposed copies of weights that layers read, but for those that before_lookup() wrote: weights
  /// may have changed in any way before. `before` is called for each node before its work is queued, and returns the
  /// context for that. `beside`: where layers may run that Layer::runs_beside(), and copies be written that the first
  /// layers do not read; null: nowhere.
  void forward(Context&, const Binding&, const std::function<Context(size_t node)>& before = {},
               SideStream* beside = nullptr) const;
  /// Called during backward() for each node, in reverse order, once work of it is queued.
  struct BackwardCallbacks {
    std::function<void(size_t node)> inputs;   ///< gradients of its inputs, of which it is the first reader
    std::function<void(size_t node)> weights;  ///< gradients of its weights: all of the node
    /// Whether `weights` queues work for this node that reads its gradients, or those of nodes before it. All that is
    /// left of the others may come in one launch later. Null: for no node, and it may come from `weights_side`.
    std::function<bool(size_t node)> weights_reads = [](size_t) { return true; };
    SideStream* weights_side = nullptr;  ///< where gradients of weights may be computed concurrently with those of
                                         ///< inputs (ops::WeightGradientRun::apart); null: nowhere
    SideStream* beside = nullptr;        ///< as in forward()
    /// How many of the last products of weights before the embeddings' gradients are complete are queued behind these,
    /// so that work which `inputs` queues for them on another stream runs beside these products.
    size_t products_behind_embeddings = 0;
    /// Called once with a context in which the gradients of all embeddings are queued, where the first layers read none
    /// and products of weights come last.
    std::function<void(Context&)> embeddings_known{};
    /// Called once with a context in which all gradients are queued but these, which are finite if their operands are.
    /// Not called where that is not known of some, or where the first layers read embeddings.
    std::function<void(Context&, std::span<const Lockstep::LateResult>)> before_late{};
  };
  /// From the loss back to weights and embeddings. Needs Phase::train. A node whose gradients lie in the memory of the
  /// next node runs before the weight gradients of that node, so that gradients of embeddings can be sent early.
  void backward(Context&, const Binding&, const BackwardCallbacks&) const;

  /// The embeddings that this node is the first to read: needed by it in forward(), and with a complete gradient once
  /// backward() has run it.
  const std::vector<size_t>& first_reads(size_t node) const { return first_reads_[node]; }
  /// The first node that reads an embedding; the number of nodes if none does.
  size_t first_reader() const;
  /// Whether a layer with weights is run in forward() before any that reads an embedding, and no loss is.
  bool computes_before_embeddings() const;
  /// Whether such a layer of one product comes right before first_reader(), and the product that hands its gradient
  /// back ops::keeps_gpu_busy(). Sums of the embeddings' gradients beside it would hold both up.
  bool keeps_busy_before_embeddings(const Binding&) const;
  /// Whether one of these layers ends with ReLU, and its reader finishes its backward pass.
  bool has_relu_before_embeddings() const;
  Tensor embedding_output(size_t embedding) const { return memory_.value(graph_.embeddings[embedding]); }
  std::optional<Tensor> embedding_lengths(size_t embedding) const {
    return graph_.lengths[embedding] ? std::optional(memory_.value(*graph_.lengths[embedding])) : std::nullopt;
  }
  Tensor embedding_gradient(size_t embedding) const { return memory_.gradient(graph_.embeddings[embedding]); }
  /// The weighted sum of all losses, [1]. A single loss of weight 1 is its own sum: the same memory.
  Tensor loss() const;
  /// The prediction of the only loss, or of the first.
  Tensor prediction() const { return predictions()[0]; }
  /// Each loss, unweighted, and what it predicts, in the order of the config.
  std::vector<Tensor> losses() const { return outputs_of_losses(0); }
  std::vector<Tensor> predictions() const { return outputs_of_losses(1); }
  /// The label of each loss in a bound batch.
  std::vector<Tensor> labels(const Binding&) const;
  /// The regularizers of the losses; each applies once.
  std::vector<LossLayer::Regularizer> regularizers() const;
  size_t activation_bytes() const { return memory_.bytes(); }

 private:
  class WeightGradients;
  void backward_weights(Context&, const Binding&, size_t node, double bytes) const;
  /// The first node, in the order of backward(), of the last `most` nodes before first_reader() whose gradients of
  /// weights are products; fewer where those of earlier nodes read memory that other layers write meanwhile.
  std::optional<size_t> products_before_embeddings(const Binding&, size_t most) const;
  void sum_gradients(Context&, TensorId) const;
  /// The node before which `beside` must be joined, if copies are written there.
  std::optional<size_t> transpose_weights(Context&, const Binding&, SideStream* beside) const;
  void forward_node(Context&, const Binding&, size_t node) const;
  void backward_node(Context&, const Binding&, size_t node) const;
  /// The first node that reads an output of this one, if the node runs on `beside`: there are others between them.
  std::optional<size_t> runs_beside_until(const Binding&, size_t node, const SideStream* beside) const;
  /// LayerIo::logit of a loss, when its nodes are bound.
  LogitIo logit_io(const Binding&, const Node::LogitNodes&) const;
  /// Whether a loss, which comes after the node, does all that the node would do.
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
  std::optional<Arena> total_;                      // the sum of losses; none if a single loss of weight 1 is the sum
  std::vector<std::vector<size_t>> first_reads_;    // [node]
  std::vector<std::optional<size_t>> searched_by_;  // [embedding]: the node that searches its gradient for overflow
  std::vector<std::vector<Tensor>> contributions_;  // [edge]: what its gradient is the sum of; empty for at most one
};

}  // namespace hctr
