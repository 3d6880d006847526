// The interface of layers. A layer has parameters, shapes and a few operator calls; it owns no memory and is
// independent of the device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/device/context.h"
#include "core/device/tensor.h"
#include "net/layers/initializer.h"
#include "ops/common/loss_scale.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/fp8_scaling.h"
#include "ops/gemm/weight_gradient.h"
#include "ops/loss/logit_loss.h"

namespace hctr {

class OnnxGraph;
struct OnnxIo;

using Specs = std::vector<TensorSpec>;

enum class Phase { train, evaluate };

/// A weight: its name inside the layer, shape and initial values. The master copy is f32. A layer gets the weight in
/// the dtype of its activations and writes the gradient in f32.
struct WeightSpec {
  std::string name;
  Shape shape;
  InitialValues start;
  bool penalised = true;    ///< whether a regularizer applies to it
  bool transposed = false;  ///< whether forward() reads LayerIo::transposed of it
};

/// State of a layer that is not a weight, such as running statistics. f32; written in training, read in evaluation.
struct StateSpec {
  std::string name;
  Shape shape;
  float start = 0;
  std::optional<float> when_absent{};  ///< the value if a model file lacks it; none: such a file is an error
};

/// The tensors of a layer for given inputs, fixed before the first step.
struct LayerSpec {
  Specs outputs;
  std::vector<WeightSpec> weights{};  ///< in the order of the dense model file
  std::vector<StateSpec> state{};
  Specs scratch{};  ///< written by forward, unchanged until backward; that of a ReluEnd by the reader
  std::vector<size_t> scratch_of_backward{};  ///< of these, by index: no memory in evaluation
  /// Memory that all layers share. Kept from the beginning of forward() to its end, and from that of backward() to the
  /// end of backward_weights().
  Specs transient{};
  size_t fp8_products = 0;  ///< products of a weight, forward and backward, whose tensors are scaled (LayerIo::fp8)
  /// Which memory outputs can share with inputs. A hint to the memory plan: layers still call ops::copy, which is a
  /// no-op when both tensors are the same memory.
  enum class Memory { own, reshape_of_input, columns_of_inputs } memory = Memory::own;
  /// Whether the gradient of every input is that of the only output. A hint like `memory`.
  bool hands_gradient_on = false;
  /// If each output holds adjacent columns of the only input: the first column of each.
  std::vector<int64_t> first_columns{};
};

/// What finishes the backward pass of a layer that ends with ReLU in the layer that reads it.
using ops::ReluEnd;

/// What a loss runs before itself (LossLayer::runs_logit_layer()): the layer of its logits and, if there is one, the
/// Add behind that.
struct LogitIo {
  ops::LogitLayer layer;
  std::optional<ops::LogitSum> sum;
};

/// The tensors of one call. Aliasing: all distinct, unless the memory plan followed the hint.
struct LayerIo {
  std::vector<Tensor> in, out, weights, state, scratch, transient;
  /// The copy of each weight that ops::transpose_weights() writes, where there is one; empty: of none.
  std::vector<std::optional<Tensor>> transposed{};
  std::vector<ops::Fp8ProductScaling> fp8{};  ///< LayerSpec::fp8_products
  std::vector<std::optional<Tensor>> d_in;    ///< absent where the gradient is not needed, as for data
  std::vector<Tensor> d_out, d_weights;       ///< a loss has no d_out
  /// Of the layer that wrote each input, if this one finishes it (finished_by_reader()); empty: it finishes none.
  std::vector<std::optional<ReluEnd>> below{};
  ops::OverflowSearch overflow{};  ///< for the gradient of Layer::searched_input()
  /// For operands of products that wait in Context::last_launches(), where backward() reads them anyhow.
  ops::OverflowSearch operands{};
  std::optional<LogitIo> logit{};  ///< of a loss, in training
  /// Replaces a tensor by its sum over all ranks, for statistics of the whole batch. On one rank a no-op.
  std::function<void(Context&, const Tensor&)> sum_over_ranks = [](Context&, const Tensor&) {};
};

/// A product x^T d_y that ops::weight_gradient() computes.
struct WeightProduct {
  Tensor x, d_y, d_w;
  bool in_backward = false;  ///< whether backward() calls it, not backward_weights()
};

/// An invalid shape or value, found when a layer gets its inputs. `field` is its path inside the section
/// ("leading_dim", "bottom/1"), which completes the JSON pointer.
class LayerError : public Error {
 public:
  LayerError(std::string field, const std::string& message) : Error(Kind::config, message), field_(std::move(field)) {}
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

/// A function that a layer applies to every element, in terms that another layer can apply it in.
struct ElementFunction {
  enum class Kind { relu, dropout } kind = Kind::relu;
  float rate = 0;       ///< of dropout
  uint64_t stream = 0;  ///< of dropout's random numbers
};

class Layer {
 public:
  virtual ~Layer() = default;
  /// Shapes of outputs, weights and scratch for these inputs. A pure function. Errors: LayerError.
  virtual LayerSpec spec(const Specs& inputs) const = 0;
  virtual void forward(Context&, const LayerIo&, Phase) const = 0;
  /// Overwrites every d_in that is present and every d_weight, unless backward_weights() writes d_weights. The network
  /// sums gradients of tensors that several layers read.
  virtual void backward(Context&, const LayerIo&) const = 0;
  /// The input whose gradient backward() searches for overflow (LayerIo::overflow) as it writes it, which saves reading
  /// it again; none: it searches nothing.
  virtual std::optional<size_t> searched_input() const { return std::nullopt; }
  /// Gradients of weights that backward() did not write. Called after it, when the gradients of inputs have been handed
  /// on to the layers before.
  virtual void backward_weights(Context&, const LayerIo&) const {}
  /// The calls of ops::weight_gradient() in backward() and backward_weights(): when they run is decided by the plan of
  /// a step (net/plan). What backward_weights() calls uses no memory that other layers use in their backward passes.
  virtual std::vector<WeightProduct> weight_products(const LayerIo&) const { return {}; }
  /// Whether backward() writes all of d_weights, so that backward_weights() has nothing to do.
  virtual bool writes_weights_in_backward(const LayerIo&) const { return false; }
  /// Adds what forward() computes in evaluation to a graph of ONNX operators, for exports. Each output gets its name.
  /// Errors: LayerError saying why the layer has no such form, and what has; unless overridden, that it has none.
  virtual void to_onnx(OnnxGraph&, const OnnxIo&) const;

  /// Whether forward() and backward() are best run on another stream, beside the layers that neither read this one's
  /// output nor write its input: they leave most of a GPU idle, and use no memory that other layers use.
  virtual bool runs_beside(const LayerIo&) const { return false; }

  /// The function that the layer applies to each element of its only input, if it is one that others can apply.
  virtual std::optional<ElementFunction> element_function() const { return std::nullopt; }
  /// One layer that computes what this one and `function` behind it compute; null if there is none. Outputs and
  /// gradients of inputs are equal bit for bit.
  virtual std::shared_ptr<const Layer> followed_by(const ElementFunction&) const { return nullptr; }

  /// This layer for a graph in which the only reader of out[0] writes to d_out[0] not the gradient of that output, but
  /// that of the input of the ReLU that ends this layer, and its bias's gradient with it; null if it does not end so.
  virtual std::shared_ptr<const Layer> finished_by_reader() const { return nullptr; }
  /// Whether backward() does so for the layer that wrote this input, given LayerIo::below.
  virtual bool finishes_layer_below(size_t input) const { return static_cast<void>(input), false; }
  /// LayerIo::below for the reader of a layer that finished_by_reader() returned, whose own tensors these are.
  virtual ReluEnd relu_end(const LayerIo&) const { throw Error(Kind::bug, "a layer without a ReLU at its end"); }

  /// Whether this is y = x W + b with one output and nothing behind it, which a loss can run together with itself.
  virtual bool is_logit_layer() const { return false; }
  /// What such a loss needs of it, given this layer's own tensors in training, with the gradient of an input at least.
  virtual ops::LogitLayer logit_layer(const LayerIo&) const { throw Error(Kind::bug, "a layer of several outputs"); }

  /// This layer for training with those products in FP8 whose weight has at least so many rows and as many columns;
  /// null if there is none. Weights are the same.
  virtual std::shared_ptr<const Layer> with_fp8_products(const Specs& inputs, int64_t least_width) const {
    return static_cast<void>(inputs), static_cast<void>(least_width), nullptr;
  }

  /// One layer with this many matrices as inputs that computes what this one computes of them side by side; null if
  /// there is none. Weights are the same, and values but for the order of sums.
  virtual std::shared_ptr<const Layer> behind_concat(size_t) const { return nullptr; }
};

/// A layer that ends a branch: in = {logits, label}, out = {loss [1], prediction [batch, width]}. Backward starts here.
/// out[0] is the loss itself; backward writes the gradient of weight() * loss.
class LossLayer : public Layer {
 public:
  /// The weight of this loss in the sum of all losses of a model.
  virtual double weight() const = 0;
  /// The regularizer of all dense weights, which a loss section may name.
  struct Regularizer {
    enum class Kind { none, l1, l2 } kind = Kind::none;
    double lambda = 0;
  };
  virtual Regularizer regularizer() const = 0;
  /// This loss for training, with the gradient of the logits written by forward(), in the pass that computes the loss:
  /// backward() leaves it alone. Null if there is none. Values and gradients are equal bit for bit.
  virtual std::shared_ptr<const Layer> with_gradient_in_forward() const { return nullptr; }
  /// Whether forward() and backward(), given LayerIo::logit, run the layer of the logits too. Such a loss is one
  /// with_gradient_in_forward().
  virtual bool runs_logit_layer() const { return false; }
};

/// Throws LayerError unless the tensor has `rank` dimensions.
void need_rank(const TensorSpec&, int rank, const std::string& field, const std::string& layer_type);
/// Throws LayerError unless all inputs have the shape of the first.
void need_one_shape(const Specs& inputs, const std::string& layer_type);

}  // namespace hctr
