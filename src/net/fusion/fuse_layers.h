// Fuses layers that one layer can compute together. Each fusion is a pattern (net/fusion/fusion_pattern.h).
#pragma once

#include "net/graph/graph.h"

namespace hctr {

/// Fuses each node with the only reader of its only output, where a pattern exists. The tensor between them gets no
/// memory then.
/// - A fully connected layer takes the ReLU after it, then the dropout after that (FusableLayer::followed_by). Values
///   are unchanged; gradients differ only in the order in which a device sums the bias gradient.
/// - A fully connected layer with one output reads the inputs of a Concat of matrices (FusableLayer::behind_concat).
///   Columns that do not begin at multiples of 16 bytes need no copy then. Only the order of sums over columns changes.
/// - The reader of an output of a Slice whose ranges are all of its input reads that input. Gradients differ only in
///   the order in which three or more are summed.
/// - A Slice of rows that are slots takes the Reshapes that put the slots of a sample into one row. Values are
///   unchanged, and each output can be written directly into a Concat's output.
/// - A loss writes the gradient of its logits in the pass that computes it (LogitLoss).
/// - A fully connected layer computes its GEMMs in FP8 where `products` says so (FusableLayer::with_fp8_products), in
///   training graphs only.
/// - A fully connected layer that is the only reader of a layer that ends with ReLU, directly or through a Concat,
///   computes the ReLU's backward pass (FusableLayer::finished_by_reader). So does an Interaction for the layer of its
///   dense vectors.
/// - A loss runs the layer of its logits in training, and an Add between them (LogitLoss); both stay in the graph.
///   Results are unchanged on a CPU; on a GPU the order of sums changes.
/// Layers that need no embedding run before all others, unless three or more gradients would be summed in another
/// order.
void fuse_layers(Graph&, const Precision& products = {});

}  // namespace hctr
