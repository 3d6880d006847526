// Fusion patterns of fully connected layers: with the following activation, with the preceding Concat, and with the
// drelu of the preceding layer.
#include <algorithm>
#include <utility>

#include "net/fusion/fusion_pattern.h"
#include "net/layers/fusable_layer.h"

namespace hctr {
namespace {

bool join_activation(Graph& graph, Node& node, size_t reader) {
  const auto& function = graph.nodes[reader].spec.traits.element_function;
  const FusableLayer* const product = as_fusable(node.layer());
  auto both = product && function ? product->followed_by(*function) : nullptr;
  if (!both) return false;
  graph.edges[node.out[0]].disconnect();
  node.fused = std::move(both);
  node.out = graph.nodes[reader].out;
  node.spec = node.layer().spec({graph.edges[node.in[0]].spec});
  graph.nodes[reader].in.clear();
  return true;
}

/// If a Concat of matrices has a single reader, connects this reader directly to the matrices.
bool join_concat(Graph& graph, Node& concat) {
  if (concat.spec.memory != LayerSpec::Memory::columns_of_inputs) return false;
  const auto reader = only_reader(graph, concat);
  if (!reader) return false;
  Specs parts;
  for (const TensorId in : concat.in) parts.push_back(graph.edges[in].spec);
  if (!std::all_of(parts.begin(), parts.end(), [](const TensorSpec& part) { return part.shape.rank() == 2; }))
    return false;
  Node& node = graph.nodes[*reader];
  const FusableLayer* const product = as_fusable(node.layer());
  auto both = product ? product->behind_concat(parts.size()) : nullptr;
  if (!both) return false;
  graph.edges[concat.out[0]].disconnect();
  node.fused = std::move(both);
  node.in = std::exchange(concat.in, {});
  node.spec = node.layer().spec(parts);
  return true;
}

/// Moves the drelu of each node that ends with ReLU into the node's only reader.
void finish_in_readers(FusedGraph& fused) {
  Graph& graph = fused.graph;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (node.out.size() != 1) continue;
    const Edge& between = graph.edges[node.out[0]];
    if (between.readers.size() != 1 || !between.needs_gradient) continue;
    Node& reader = graph.nodes[between.readers[0]];
    const auto input =
        static_cast<size_t>(std::find(reader.in.begin(), reader.in.end(), node.out[0]) - reader.in.begin());
    const FusableLayer* const product = as_fusable(node.layer());
    if (!product || std::ranges::count(reader.spec.traits.finishes_relu_of, input) == 0) continue;
    auto layer = product->finished_by_reader();
    if (!layer) continue;
    node.fused = std::move(layer);
    node.spec = node.layer().spec({graph.edges[node.in[0]].spec});
    reader.finishes.resize(reader.in.size());
    reader.finishes[input] = n;
  }
}

void join_activations(FusedGraph& fused) {
  for (size_t n = 0; n < fused.graph.nodes.size(); ++n) {
    if (fused.gone[n]) continue;
    while (const auto reader = only_reader(fused.graph, fused.graph.nodes[n])) {
      if (!join_activation(fused.graph, fused.graph.nodes[n], *reader)) break;
      fused.gone[*reader] = true;
    }
  }
}

void join_concats(FusedGraph& fused) {
  for (size_t n = 0; n < fused.graph.nodes.size(); ++n)
    if (!fused.gone[n]) fused.gone[n] = join_concat(fused.graph, fused.graph.nodes[n]);
}

void use_fp8(FusedGraph& fused) {
  if (!fused.products.fp8_products) return;
  for (Node& node : fused.graph.nodes) {
    const FusableLayer* const product = as_fusable(node.layer());
    if (!product) continue;
    Specs inputs;
    for (const TensorId in : node.in) inputs.push_back(fused.graph.edges[in].spec);
    auto layer = product->with_fp8_products(inputs, fused.products.least_fp8_width);
    if (!layer) continue;
    node.fused = std::move(layer);
    node.spec = node.layer().spec(inputs);
  }
}

}  // namespace

const FusionPattern kActivationsBehindProducts = {"a fully connected layer, ReLU and Dropout", join_activations};
const FusionPattern kConcatsBeforeOneOutput = {"a Concat and a fully connected layer with one output column",
                                               join_concats};
const FusionPattern kFp8Products = {"products in FP8", use_fp8};
const FusionPattern kReluFinishedByReader = {"the backward pass of a ReLU and of the GEMM after the ReLU",
                                             finish_in_readers};

}  // namespace hctr
