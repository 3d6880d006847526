// The interface between net/fusion and the layers that fusions replace: fully connected layers and losses. Other layers
// do not use it.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// A fully connected layer, or a layer that a fusion made from one.
class FusableLayer : public Layer {
 public:
  /// One layer that computes this layer and the `function` after it; null if no such layer exists. Outputs and input
  /// gradients are bitwise equal.
  virtual std::shared_ptr<const Layer> followed_by(const ElementFunction&) const { return nullptr; }
  /// One layer that reads this many matrices and computes what this layer computes from their concatenation; null if no
  /// such layer exists. Weights are the same; values differ only in the order of sums.
  virtual std::shared_ptr<const Layer> behind_concat(size_t) const { return nullptr; }
  /// This layer for training, with FP8 GEMMs for each weight of at least `least_width` rows and columns; null if no
  /// such layer exists. Weights are the same.
  virtual std::shared_ptr<const Layer> with_fp8_products(const Specs& inputs, int64_t least_width) const {
    return static_cast<void>(inputs), static_cast<void>(least_width), nullptr;
  }
  /// This layer for a graph in which the only reader of out[0] also computes this layer's drelu: the reader writes the
  /// gradient before the ReLU to d_out[0], and the bias gradient. Null if the layer does not end with ReLU.
  virtual std::shared_ptr<const Layer> finished_by_reader() const { return nullptr; }
  /// LayerIo::below for the reader of a layer that finished_by_reader() returned; `io` holds that layer's own tensors.
  virtual ReluEnd relu_end(const LayerIo&) const { throw Error(Kind::bug, "a layer without a ReLU at its end"); }
  /// Whether this layer is y = x W + b with one output and no activation, which a loss can run itself.
  virtual bool is_logit_layer() const { return false; }
  /// The arguments of such a loss, from this layer's own tensors in training, where at least one input has a gradient.
  virtual ops::LogitLayer logit_layer(const LayerIo&) const { throw Error(Kind::bug, "a layer of several outputs"); }
};

/// Null for other layers.
inline const FusableLayer* as_fusable(const Layer& layer) { return dynamic_cast<const FusableLayer*>(&layer); }

/// A loss whose forward() and backward() also run the layer of its logits, given LayerIo::logit.
class LogitLoss : public LossLayer {
 public:
  /// This loss for training: forward() writes the gradient of the logits in the pass that computes the loss, and
  /// backward() does not write it again. Values and gradients are bitwise equal.
  virtual std::shared_ptr<const Layer> with_gradient_in_forward() const = 0;
};

}  // namespace hctr
