// Finds the layers of a factorization machine in a graph, and lets one layer compute them.
#pragma once

#include <vector>

#include "net/graph/graph.h"

namespace hctr {

/// A Slice cuts the slots of a table into vectors and single weights. Reshapes put those of a sample into one row, and
/// Concats others beside them. An FmOrder2 and a ReduceSum of the vectors, and a ReduceSum of the weights, are the
/// second- and first-order terms. Where a graph has this and nobody else reads what lies between, one node takes the
/// place of all. Returns the nodes that are gone, whose inputs are empty.
std::vector<size_t> join_factorization_machines(Graph&);

}  // namespace hctr
