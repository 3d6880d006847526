// Fusion patterns: a loss that writes its gradient in its forward pass, and a loss that runs the layer of its logits.
#include <algorithm>
#include <utility>

#include "net/fusion/fusion_pattern.h"
#include "net/layers/fusable_layer.h"

namespace hctr {
namespace {

/// Returns the node that wrote the tensor. None if that node's layer computes no logits, or if the tensor has several
/// readers.
std::optional<size_t> logit_layer_of(const Graph& graph, TensorId id) {
  const Edge& edge = graph.edges[id];
  if (!edge.producer || edge.readers.size() != 1 || !edge.needs_gradient) return std::nullopt;
  const Node& node = graph.nodes[*edge.producer];
  const bool trains_input =
      std::any_of(node.in.begin(), node.in.end(), [&](TensorId in) { return graph.edges[in].needs_gradient; });
  const FusableLayer* const layer = as_fusable(node.layer());
  return layer && layer->is_logit_layer() && trains_input ? edge.producer : std::nullopt;
}

/// Lets a loss run the layer of its logits. If an Add sums that layer's output and other tensors, the loss also runs
/// the Add.
void run_logit_layer(Graph& graph, Node& loss) {
  if (!dynamic_cast<const LogitLoss*>(&loss.layer())) return;
  const Edge& logits = graph.edges[loss.in[0]];
  std::optional<Node::LogitNodes> nodes;
  if (const auto layer = logit_layer_of(graph, loss.in[0])) {
    nodes = {*layer, std::nullopt};
  } else if (logits.producer && logits.readers.size() == 1) {
    const Node& sum = graph.nodes[*logits.producer];
    if (sum.fused || sum.entry->type->name() != "Add") return;
    for (const TensorId in : sum.in)
      if (const auto term = logit_layer_of(graph, in); term && !nodes) nodes = {*term, logits.producer};
  }
  if (!nodes) return;
  loss.logit = nodes;
  graph.nodes[nodes->layer].run_by_loss = true;
  if (nodes->sum) graph.nodes[*nodes->sum].run_by_loss = true;
}

void write_gradients_in_losses(FusedGraph& fused) {
  for (const size_t loss : fused.graph.losses) {
    Node& node = fused.graph.nodes[loss];
    if (const auto* of_logits = dynamic_cast<const LogitLoss*>(&node.layer()))
      node.fused = of_logits->with_gradient_in_forward();
  }
}

void run_logit_layers(FusedGraph& fused) {
  for (const size_t loss : fused.graph.losses) run_logit_layer(fused.graph, fused.graph.nodes[loss]);
}

}  // namespace

const FusionPattern kGradientsInLosses = {"a loss and its gradient", write_gradients_in_losses};
const FusionPattern kLogitLayersInLosses = {"the layer of the logits and the loss", run_logit_layers};

}  // namespace hctr
