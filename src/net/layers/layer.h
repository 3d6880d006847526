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

/// An element-wise function of a layer, described so that another layer can apply it.
struct ElementFunction {
  enum class Kind { relu, dropout } kind = Kind::relu;
  float rate = 0;       ///< of dropout
  uint64_t stream = 0;  ///< stream of dropout's random numbers
};

/// A call of ops::weight_gradient(), x^T d_y, described by the places of its operands in a LayerIo.
struct WeightProduct {
  struct Operand {
    enum class In { inputs, scratch, output_gradients } in = In::inputs;
    size_t index = 0;
  };
  Operand x, d_y;
  size_t weight = 0;
  bool in_backward = false;  ///< whether backward() calls it instead of backward_weights()
};

/// Properties of a layer that fusions (net/fusion) and the plan of a step (net/plan) use. A layer without them leaves
/// the defaults.
struct LayerTraits {
  /// The input whose gradient backward() checks for overflow (LayerIo::overflow) while it writes it, which saves a
  /// pass.
  std::optional<size_t> searches_gradient_of{};
  /// Whether backward() writes all of d_weights, so that backward_weights() has nothing left to do.
  enum class WeightsInBackward { no, with_gradient_of_input, always } weights_in_backward = WeightsInBackward::no;
  /// The calls of ops::weight_gradient(), which the plan of a step schedules. The calls in backward_weights() must not
  /// use memory that the backward passes of other layers use.
  std::vector<WeightProduct> weight_products{};
  /// Whether forward() and backward() run best on another stream, concurrently with layers that neither read this
  /// layer's output nor write its input: they leave most of a GPU idle, and use no memory that other layers use.
  bool runs_aside = false;
  /// The function that the layer applies to each element of its only input, if it is element-wise.
  std::optional<ElementFunction> element_function{};
  /// The inputs for which backward() can compute the drelu of the layer that wrote them, given LayerIo::below.
  std::vector<size_t> finishes_relu_of{};
};

/// The tensors of a layer for given inputs, fixed before the first step.
struct LayerSpec {
  Specs outputs;
  std::vector<WeightSpec> weights{};  ///< in the order of the dense model file
  std::vector<StateSpec> state{};
  /// written by forward(), unchanged until backward(); with a ReluEnd, unchanged until the reader's backward()
  Specs scratch{};
  std::vector<size_t> scratch_of_backward{};  ///< indices into scratch: entries that evaluation does not need
  /// Memory shared by all layers. Its contents are valid during forward(), and from the start of backward() to the end
  /// of backward_weights().
  Specs transient{};
  size_t fp8_products = 0;  ///< weights whose GEMMs, forward and backward, scale their tensors (LayerIo::fp8)
  /// How outputs may share memory with inputs. A hint to the memory plan: layers still call ops::copy, which is a no-op
  /// when both tensors are the same memory.
  enum class Memory { own, reshape_of_input, columns_of_inputs } memory = Memory::own;
  /// Whether the gradient of every input is the gradient of the only output. A hint like `memory`.
  bool hands_gradient_on = false;
  /// The first input column of each output, if every output is a range of adjacent columns of the only input.
  std::vector<int64_t> first_columns{};
  LayerTraits traits{};
};

/// The tensors with which a reader computes the drelu of the layer before it.
using ops::ReluEnd;

/// The layers that a loss runs itself (LogitLoss): the layer of its logits and the Add after that, if any.
struct LogitIo {
  ops::LogitLayer layer;
  std::optional<ops::LogitSum> sum;
};

/// The tensors of one call. Aliasing: all distinct, unless the memory plan followed a hint.
struct LayerIo {
  std::vector<Tensor> in, out, weights, state, scratch, transient;
  /// For each weight the copy that ops::transpose_weights() writes, if any. Empty: no weight has one.
  std::vector<std::optional<Tensor>> transposed{};
  std::vector<ops::Fp8ProductScaling> fp8{};  ///< LayerSpec::fp8_products
  std::vector<std::optional<Tensor>> d_in;    ///< absent where the gradient is not needed, as for data
  std::vector<Tensor> d_out, d_weights;       ///< a loss has no d_out
  /// For each input: the tensors of the layer that wrote it, if this layer computes that one's drelu
  /// (FusableLayer::finished_by_reader()). Empty if there is none.
  std::vector<std::optional<ReluEnd>> below{};
  ops::OverflowSearch overflow{};  ///< for the gradient of LayerTraits::searches_gradient_of
  /// Overflow check of operands that backward() reads anyway, for wgrads that wait in Context::last_launches().
  ops::OverflowSearch operands{};
  std::optional<LogitIo> logit{};  ///< for losses in training
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
  /// Writes the wgrads that backward() did not write. Called after backward(), when the layers before may already use
  /// the gradients of inputs.
  virtual void backward_weights(Context&, const LayerIo&) const {}
  /// Adds the operators that compute forward() in evaluation to an ONNX graph, for exports. Each output gets its name.
  /// Errors: LayerError with the reason and an alternative if ONNX has no equivalent; the default throws that the layer
  /// has none.
  virtual void to_onnx(OnnxGraph&, const OnnxIo&) const;
};

/// A layer that ends a branch: in = {logits, label}, out = {loss [1], prediction [batch, width]}. The backward pass
/// starts here. out[0] is the unweighted loss; backward() writes the gradient of weight() * loss.
class LossLayer : public Layer {
 public:
  /// The weight of this loss in the sum of all losses of a model.
  virtual double weight() const = 0;
  /// The regularizer of all dense weights. A loss section may set it.
  struct Regularizer {
    enum class Kind { none, l1, l2 } kind = Kind::none;
    double lambda = 0;
  };
  virtual Regularizer regularizer() const = 0;
};

/// Whether backward() writes all wgrads.
bool writes_weights_in_backward(const LayerSpec&, const LayerIo&);
/// Throws LayerError unless the tensor has `rank` dimensions.
void need_rank(const TensorSpec&, int rank, const std::string& field, const std::string& layer_type);
/// Throws LayerError unless all inputs have the shape of the first.
void need_one_shape(const Specs& inputs, const std::string& layer_type);

}  // namespace hctr
