// Fuses layers that a single layer can compute. Each fusion is a pattern (net/fusion/fusion_pattern.h).
#pragma once

#include "net/graph/graph.h"

namespace hctr {

/// Fuses each node that matches a pattern with the only reader of its only output. The tensor between the two then
/// needs no memory.
/// - A fully connected layer absorbs the following ReLU, then the dropout after that ReLU (FusableLayer::followed_by).
///   Values are unchanged. The bias gradient may be summed in another order.
/// - A fully connected layer with one output column reads the inputs of a Concat of matrices directly
///   (FusableLayer::behind_concat), without copying unaligned columns. Sums over columns have another order.
/// - A Slice whose ranges all cover the whole input is removed, and its readers read that input. If a tensor has three
///   or more gradients, their sum may have another order.
/// - A Slice whose rows are slots absorbs the Reshapes that put the slots of a sample into one row. Values are
///   unchanged, and each output can be written directly into a Concat's output.
/// - A loss writes the gradient of its logits in the pass that computes the loss (LogitLoss).
/// - In training graphs, a fully connected layer computes the GEMMs that `products` selects in FP8
///   (FusableLayer::with_fp8_products).
/// - If a layer ends with ReLU and its only reader is a fully connected layer, directly or through a Concat, the reader
///   computes the drelu (FusableLayer::finished_by_reader). An Interaction does the same for the layer of its dense
///   vectors.
/// - In training, a loss runs the layer of its logits and, if present, the Add between the two (LogitLoss). Both stay
///   in the graph. Results are unchanged on a CPU; on a GPU the order of sums changes.
/// After fusion, layers that need no embedding run before all others, unless this changes the order of a sum of three
/// or more gradients.
void fuse_layers(Graph&, const Precision& products = {});

}  // namespace hctr
