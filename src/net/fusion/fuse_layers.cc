#include "net/fusion/fuse_layers.h"

#include <algorithm>
#include <utility>

#include "net/fusion/fusion_pattern.h"

namespace hctr {
namespace {

/// Whether another running order changes the value of a sum: whether a tensor with three or more gradients has its
/// readers in another sequence in `other` than in `order`.
bool changes_sums(const Graph& graph, const std::vector<size_t>& order, const std::vector<size_t>& other) {
  std::vector<size_t> place(graph.nodes.size());
  for (size_t i = 0; i < other.size(); ++i) place[other[i]] = i;
  std::vector<std::vector<size_t>> readers(graph.edges.size());
  for (const size_t n : order)
    for (const TensorId in : graph.nodes[n].in) readers[in].push_back(place[n]);
  for (TensorId id = 0; id < readers.size(); ++id)
    // a sum of two gradients is the same in both orders
    if (graph.edges[id].needs_gradient && readers[id].size() > 2 &&
        !std::is_sorted(readers[id].begin(), readers[id].end()))
      return true;
  return false;
}

/// The remaining nodes, in running order. Nodes that depend on no embedding come first, so that they can run during the
/// look-ups. Their backward pass then runs after the gradients of embeddings are complete. Nodes that depend on an
/// embedding, and the losses, follow. Keeps the old order if there is no embedding, or if the new order would change a
/// sum.
std::vector<size_t> running_order(const Graph& graph, const std::vector<bool>& gone) {
  std::vector<bool> waits(graph.edges.size(), false);
  for (const TensorId embedding : graph.embeddings) waits[embedding] = true;
  std::vector<size_t> as_they_are, first, later;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (gone[n]) continue;
    const Node& node = graph.nodes[n];
    const bool late =
        node.is_loss() || std::any_of(node.in.begin(), node.in.end(), [&](TensorId in) { return waits[in]; });
    for (const TensorId out : node.out) waits[out] = late;
    as_they_are.push_back(n);
    (late ? later : first).push_back(n);
  }
  first.insert(first.end(), later.begin(), later.end());
  return graph.embeddings.empty() || changes_sums(graph, as_they_are, first) ? as_they_are : first;
}

/// Erases the nodes that fusions removed, and sorts the remaining nodes into running order.
void keep_others(Graph& graph, const std::vector<bool>& gone) {
  std::vector<size_t> now(graph.nodes.size());  // the new index of each remaining node
  std::vector<Node> kept;
  for (const size_t n : running_order(graph, gone)) {
    now[n] = kept.size();
    kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
  for (Edge& edge : graph.edges) edge.readers.clear();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const TensorId in : graph.nodes[n].in) graph.edges[in].readers.push_back(n);
    for (const TensorId out : graph.nodes[n].out) graph.edges[out].producer = n;
  }
  for (size_t& loss : graph.losses) loss = now[loss];
}

}  // namespace

std::span<const FusionPattern* const> patterns_that_join() {
  static const FusionPattern* const kPatterns[] = {&kWholeSlices, &kFactorizationMachines, &kActivationsBehindProducts,
                                                   &kConcatsBeforeOneOutput, &kSlotColumns};
  return kPatterns;
}

std::span<const FusionPattern* const> patterns_of_running_order() {
  static const FusionPattern* const kPatterns[] = {&kGradientsInLosses, &kFp8Products, &kReluFinishedByReader,
                                                   &kLogitLayersInLosses};
  return kPatterns;
}

bool is_layer(const Node& node, const char* type) { return !node.fused && node.entry->type->name() == type; }

std::optional<size_t> only_reader(const Graph& graph, const Node& node) {
  if (node.out.size() != 1) return std::nullopt;
  const Edge& between = graph.edges[node.out[0]];
  if (between.readers.size() != 1) return std::nullopt;
  const Node& reader = graph.nodes[between.readers[0]];
  return reader.in.size() == 1 && reader.out.size() == 1 ? std::optional(between.readers[0]) : std::nullopt;
}

void fuse_layers(Graph& graph, const Precision& products) {
  FusedGraph fused{graph, products, std::vector<bool>(graph.nodes.size(), false)};
  for (const FusionPattern* pattern : patterns_that_join()) pattern->fuse(fused);
  keep_others(graph, fused.gone);
  fused.gone.assign(graph.nodes.size(), false);
  for (const FusionPattern* pattern : patterns_of_running_order()) pattern->fuse(fused);
}

}  // namespace hctr
