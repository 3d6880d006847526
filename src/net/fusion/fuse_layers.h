// Layers that one layer can compute together. Each way is a pattern (net/fusion/fusion_pattern.h).
#pragma once

#include "net/graph/graph.h"

namespace hctr {

/// Joins each node with the one that alone reads its only output, where layers know how. The tensor between them has no
/// memory afterwards.
/// - A fully connected layer takes the ReLU behind it, then the dropout behind that (FusableLayer::followed_by). Values
/// are
///   unchanged, and gradients but for the order in which a device sums the bias's.
/// - A fully connected layer with one output reads the inputs of a Concat of matrices (FusableLayer::behind_concat).
/// Columns
///   that would begin between multiples of 16 bytes need no copy then. Unchanged but for the order of sums over
///   columns.
/// - Who reads an output of a Slice whose ranges are all of its input reads that input. Gradients are unchanged but for
///   the order in which three or more are summed.
/// - A Slice of rows that are slots takes the Reshapes that put the slots of a sample into one row. Values are
///   unchanged, and each output can lie where a Concat wants it.
/// - A loss writes the gradient of its logits in the pass that computes it (LogitLoss).
/// - A fully connected layer computes its products in FP8, where `products` says so (FusableLayer::with_fp8_products):
/// for
///   graphs of training.
/// - A fully connected layer that alone reads one which ends with ReLU, behind a Concat or not, finishes that one's
///   backward pass (FusableLayer::finished_by_reader). So does an Interaction for the layer of its dense vectors.
/// - A loss runs the layer of its logits in training, and an Add between them (LogitLoss); both stay
///   in the graph. On a CPU nothing changes, on a GPU the order of sums.
/// Layers that need no embedding run before all others, unless three or more gradients would be summed in another
/// order.
void fuse_layers(Graph&, const Precision& products = {});

}  // namespace hctr
