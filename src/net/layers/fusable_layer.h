// What the patterns of net/fusion make of fully connected layers, and of a loss behind one. Other layers know nothing
// of it.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// A fully connected layer, or what one has become.
class FusableLayer : public Layer {
 public:
  /// One layer that computes what this one and `function` behind it compute; null if there is none. Outputs and
  /// gradients of inputs are equal bit for bit.
  virtual std::shared_ptr<const Layer> followed_by(const ElementFunction&) const { return nullptr; }
  /// One layer with this many matrices as inputs that computes what this one computes of them side by side; null if
  /// there is none. Weights are the same, and values but for the order of sums.
  virtual std::shared_ptr<const Layer> behind_concat(size_t) const { return nullptr; }
  /// This layer for training with those products in FP8 whose weight has at least so many rows and as many columns;
  /// null if there is none. Weights are the same.
  virtual std::shared_ptr<const Layer> with_fp8_products(const Specs& inputs, int64_t least_width) const {
    return static_cast<void>(inputs), static_cast<void>(least_width), nullptr;
  }
  /// This layer for a graph in which the only reader of out[0] writes to d_out[0] not the gradient of that output, but
  /// that of the input of the ReLU that ends this layer, and its bias's gradient with it; null if it does not end so.
  virtual std::shared_ptr<const Layer> finished_by_reader() const { return nullptr; }
  /// LayerIo::below for the reader of a layer that finished_by_reader() returned, whose own tensors these are.
  virtual ReluEnd relu_end(const LayerIo&) const { throw Error(Kind::bug, "a layer without a ReLU at its end"); }
  /// Whether this is y = x W + b with one output and nothing behind it, which a loss can run together with itself.
  virtual bool is_logit_layer() const { return false; }
  /// What such a loss needs of it, given this layer's own tensors in training, with the gradient of an input at least.
  virtual ops::LogitLayer logit_layer(const LayerIo&) const { throw Error(Kind::bug, "a layer of several outputs"); }
};

/// Null for other layers.
inline const FusableLayer* as_fusable(const Layer& layer) { return dynamic_cast<const FusableLayer*>(&layer); }

/// A loss whose forward() and backward() run the layer of its logits too, given LayerIo::logit.
class LogitLoss : public LossLayer {
 public:
  /// This loss for training, with the gradient of the logits written by forward(), in the pass that computes the loss:
  /// backward() leaves it alone. Values and gradients are equal bit for bit.
  virtual std::shared_ptr<const Layer> with_gradient_in_forward() const = 0;
};

}  // namespace hctr
