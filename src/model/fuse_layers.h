// Layers that one layer can compute together.
#pragma once

#include "model/graph.h"

namespace hctr {

/// Joins each node with the one that alone reads its only output, where Layer::followed_by() knows how: a fully
/// connected layer takes the ReLU behind it, then the dropout behind that. The tensor between them has no memory
/// afterwards. Then a fully connected layer that alone reads one which ends with ReLU finishes that one's backward pass. Values are unchanged, and gradients but for the order in which a device sums the bias's.
void fuse_layers(Graph&);

}  // namespace hctr
