// A fusion: a pattern that is looked for in a graph, and what becomes of the layers where it is found.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/graph/graph.h"

namespace hctr {

/// A graph whose layers are being fused.
struct FusedGraph {
  Graph& graph;
  const Precision& products;  ///< FP8 where it says so: of graphs for training
  std::vector<bool> gone;     ///< [node] another one computes it; its inputs are empty
};

/// `fuse` finds all places of the graph where the pattern is, and changes these.
struct FusionPattern {
  const char* name;
  void (*fuse)(FusedGraph&);
};

// They take nodes out of the graph, in this order.
extern const FusionPattern kWholeSlices, kFactorizationMachines, kActivationsBehindProducts, kConcatsBeforeOneOutput,
    kSlotColumns;
// Of the nodes that are left, in their running order: no node goes.
extern const FusionPattern kGradientsInLosses, kFp8Products, kReluFinishedByReader, kLogitLayersInLosses;

std::span<const FusionPattern* const> patterns_that_join();
std::span<const FusionPattern* const> patterns_of_running_order();

/// The node that alone reads the only output of `node`, if it reads nothing else.
std::optional<size_t> only_reader(const Graph&, const Node&);

}  // namespace hctr
