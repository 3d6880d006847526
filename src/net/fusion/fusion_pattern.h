// A fusion: a pattern to find in a graph, and the layers that replace each match.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/graph/graph.h"

namespace hctr {

/// A graph whose layers are being fused.
struct FusedGraph {
  Graph& graph;
  const Precision& products;  ///< which GEMMs to run in FP8, in training graphs
  std::vector<bool> gone;     ///< [node] true: a fusion removed the node, and other nodes do its work
};

/// `fuse` finds all matches of the pattern in the graph and replaces them.
struct FusionPattern {
  const char* name;
  void (*fuse)(FusedGraph&);
};

// Patterns that remove nodes from the graph. They are applied in this order.
extern const FusionPattern kWholeSlices, kFactorizationMachines, kActivationsBehindProducts, kConcatsBeforeOneOutput,
    kSlotColumns;
// Patterns that remove no node. They are applied later, to the remaining nodes in running order.
extern const FusionPattern kGradientsInLosses, kFp8Products, kReluFinishedByReader, kLogitLayersInLosses;

std::span<const FusionPattern* const> patterns_that_join();
std::span<const FusionPattern* const> patterns_of_running_order();

/// Whether the node runs a layer of this type that is not fused with other layers.
bool is_layer(const Node&, const char* type);
/// The only reader of the only output of `node`, if the reader has no other inputs.
std::optional<size_t> only_reader(const Graph&, const Node&);

}  // namespace hctr
