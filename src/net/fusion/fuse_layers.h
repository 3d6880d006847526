// Fuses layers that a single layer can compute. Each fusion is a pattern (net/fusion/fusion_pattern.h).
#pragma once

#include "net/graph/graph.h"

namespace hctr {

/// Fuses nodes that match a pattern. Most patterns fuse a node with the only reader of its only output; the tensor
/// between these two nodes then needs no memory.
/// - A fully connected layer absorbs the following ReLU, then the dropout after that ReLU (FusableLayer::followed_by).
///   Values are unchanged. The bias gradient may be summed in another order.
/// - A fully connected layer with one output column reads the inputs of a Concat of matrices directly
///   (FusableLayer::behind_concat), without copying unaligned columns. Sums over columns are computed in another order.
/// - A Slice is removed if each of its ranges covers the whole input. The readers of the Slice then read that input. If
///   the input has three or more gradients, these may be summed in another order.
/// - A Slice whose rows are slots absorbs the Reshapes that put the slots of a sample into one row. Values are
///   unchanged, and each output can be written directly into a Concat's output.
/// - A loss writes the gradient of its logits in the pass that computes the loss (LogitLoss).
/// - In training graphs, a fully connected layer runs those GEMMs in FP8 that `products` selects
///   (FusableLayer::with_fp8_products).
/// - If a layer ends with ReLU and its only reader is a fully connected layer, that reader computes the drelu
///   (FusableLayer::finished_by_reader). This also works if a Concat lies between the two layers. Likewise, an
///   Interaction computes the drelu of the layer that wrote its dense vectors.
/// - In training, a loss runs the layer that computes its logits. If an Add lies between that layer and the loss, the
///   loss also runs the Add (LogitLoss). Both nodes stay in the graph. Results are unchanged on a CPU; on a GPU the
///   order of sums changes.
/// After fusion, layers that depend on no embedding run before all others, unless this changes the order of a sum of
/// three or more gradients.
void fuse_layers(Graph&, const Precision& products = {});

}  // namespace hctr
