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

/// A function that a layer applies to every element, in terms that another layer can apply it in.
struct ElementFunction {
  enum class Kind { relu, dropout } kind = Kind::relu;
  float rate = 0;       ///< of dropout
  uint64_t stream = 0;  ///< of dropout's random numbers
};

/// A call of ops::weight_gradient(), x^T d_y, by where its operands are in a LayerIo.
struct WeightProduct {
  struct Operand {
    enum class In { inputs, scratch, output_gradients } in = In::inputs;
    size_t index = 0;
  };
  Operand x, d_y;
  size_t weight = 0;
  bool in_backward = false;  ///< whether backward() calls it, not backward_weights()
};

/// What a layer lets others do, or does for them, in a fusion (net/fusion) or in the plan of a step (net/plan). A layer
/// that is fused with nothing declares none of it.
struct LayerTraits {
  /// The input whose gradient backward() searches for overflow (LayerIo::overflow) as it writes it, which saves reading
  /// it again.
  std::optional<size_t> searches_gradient_of{};
  /// Whether backward() writes all of d_weights, so that backward_weights() has nothing to do.
  enum class WeightsInBackward { no, with_gradient_of_input, always } weights_in_backward = WeightsInBackward::no;
  /// When these run is decided by the plan of a step. What backward_weights() calls uses no memory that other layers
  /// use in their backward passes.
  std::vector<WeightProduct> weight_products{};
  /// Whether forward() and backward() are best run on another stream, beside the layers that neither read this one's
  /// output nor write its input: they leave most of a GPU idle, and use no memory that other layers use.
  bool runs_aside = false;
  /// The function that the layer applies to each element of its only input.
  std::optional<ElementFunction> element_function{};
  /// The inputs for whose writer backward() can finish the backward pass of a ReLU, given LayerIo::below.
  std::vector<size_t> finishes_relu_of{};
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
  LayerTraits traits{};
};

/// What finishes the backward pass of a layer that ends with ReLU in the layer that reads it.
using ops::ReluEnd;

/// What a loss runs before itself (LogitLoss): the layer of its logits and, if there is one, the
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
  /// Of the layer that wrote each input, if this one finishes it (FusableLayer::finished_by_reader()); empty: it
  /// finishes none.
  std::vector<std::optional<ReluEnd>> below{};
  ops::OverflowSearch overflow{};  ///< for the gradient of LayerTraits::searches_gradient_of
  /// For operands of products that wait in Context::last_launches(), where backward() reads them anyhow.
  ops::OverflowSearch operands{};
  std::optional<LogitIo> logit{};  ///< of a loss, in training
  /// Replaces a tensor by its sum over all ranks, for statistics of the whole batch. On one rank a no-op.
  std::function<void(Context&, const Tensor&)> sum_over_ranks = [](Context&, const Tensor&) {};
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

class Layer {
 public:
  virtual ~Layer() = default;
  /// Shapes of outputs, weights and scratch for these inputs. A pure function. Errors: LayerError.
  virtual LayerSpec spec(const Specs& inputs) const = 0;
  virtual void forward(Context&, const LayerIo&, Phase) const = 0;
  /// Overwrites every d_in that is present and every d_weight, unless backward_weights() writes d_weights. The network
  /// sums gradients of tensors that several layers read.
  virtual void backward(Context&, const LayerIo&) const = 0;
  /// Gradients of weights that backward() did not write. Called after it, when the gradients of inputs have been handed
  /// on to the layers before.
  virtual void backward_weights(Context&, const LayerIo&) const {}
  /// Adds what forward() computes in evaluation to a graph of ONNX operators, for exports. Each output gets its name.
  /// Errors: LayerError saying why the layer has no such form, and what has; unless overridden, that it has none.
  virtual void to_onnx(OnnxGraph&, const OnnxIo&) const;
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
};

/// Whether backward() writes all gradients of weights.
bool writes_weights_in_backward(const LayerSpec&, const LayerIo&);
/// Throws LayerError unless the tensor has `rank` dimensions.
void need_rank(const TensorSpec&, int rank, const std::string& field, const std::string& layer_type);
/// Throws LayerError unless all inputs have the shape of the first.
void need_one_shape(const Specs& inputs, const std::string& layer_type);

}  // namespace hctr
