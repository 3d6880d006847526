// The interface between net/fusion and the layers that fusions replace: fully connected layers and losses.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// A fully connected layer, or a layer that a fusion made from one.
class FusableLayer : public Layer {
 public:
  /// A layer that computes this layer and the `function` after it; null if none exists. Outputs and input gradients are
  /// bitwise equal to those of the two layers.
  virtual std::shared_ptr<const Layer> followed_by(const ElementFunction&) const { return nullptr; }
  /// A layer that reads this many matrices and computes this layer's output for their concatenation; null if none
  /// exists. Weights are the same; values differ only in the order of summation.
  virtual std::shared_ptr<const Layer> behind_concat(size_t) const { return nullptr; }
  /// Returns a copy of this layer for training, in which the GEMMs of each weight with at least `least_width` rows and
  /// columns run in FP8. Weights are the same. Null if no such layer exists.
  virtual std::shared_ptr<const Layer> with_fp8_products(const Specs& inputs, int64_t least_width) const {
    return static_cast<void>(inputs), static_cast<void>(least_width), nullptr;
  }
  /// Returns a copy of this layer that leaves its drelu to the only reader of out[0]. That reader writes the gradient
  /// before the ReLU to d_out[0], and also writes the bias gradient. Null if the layer does not end with ReLU.
  virtual std::shared_ptr<const Layer> finished_by_reader() const { return nullptr; }
  /// The element of LayerIo::below for the layer that reads this layer's output. Call only on a layer that
  /// finished_by_reader() returned. `io`: this layer's own tensors.
  virtual ReluEnd relu_end(const LayerIo&) const { throw Error(Kind::bug, "a layer without a ReLU at its end"); }
  /// Whether this layer is y = x W + b with one output and no activation. A loss can run such a layer.
  virtual bool is_logit_layer() const { return false; }
  /// The arguments for a loss that runs this layer. `io`: this layer's own tensors in training, where at least one
  /// input has a gradient.
  virtual ops::LogitLayer logit_layer(const LayerIo&) const { throw Error(Kind::bug, "a layer of several outputs"); }
};

/// The layer as a FusableLayer; null if it is of another class.
inline const FusableLayer* as_fusable(const Layer& layer) { return dynamic_cast<const FusableLayer*>(&layer); }

/// A loss whose forward() and backward() also run the layer of its logits if LayerIo::logit is set.
class LogitLoss : public LossLayer {
 public:
  /// Returns this loss for training, with one change: forward() also writes the gradient of the logits, in the pass
  /// that computes the loss. Values and gradients are bitwise equal.
  virtual std::shared_ptr<const Layer> with_gradient_in_forward() const = 0;
};

}  // namespace hctr
