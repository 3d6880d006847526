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

/// A weight of a layer: name, shape and initial values. The master copy is f32. The layer reads the weight in the dtype
/// of the layer's activations, and writes the gradient in f32.
struct WeightSpec {
  std::string name;
  Shape shape;
  InitialValues start;
  bool penalised = true;    ///< whether a regularizer applies to the weight
  bool transposed = false;  ///< whether forward() reads the weight's LayerIo::transposed
};

/// State of a layer that is not a weight, such as running statistics. The dtype is f32. Training writes the state,
/// evaluation reads it.
struct StateSpec {
  std::string name;
  Shape shape;
  float start = 0;
  /// value for model files that lack this state; none: loading such a file is an error
  std::optional<float> when_absent{};
};

/// A layer's element-wise function, described so that another layer can apply the function.
struct ElementFunction {
  enum class Kind { relu, dropout } kind = Kind::relu;
  float rate = 0;       ///< dropout rate
  uint64_t stream = 0;  ///< random stream of dropout
};

/// A call of ops::weight_gradient(), which computes x^T d_y. Operands are given by their positions in LayerIo.
struct WeightProduct {
  struct Operand {
    enum class In { inputs, scratch, output_gradients } in = In::inputs;
    size_t index = 0;
  };
  Operand x, d_y;
  size_t weight = 0;
  bool in_backward = false;  ///< whether backward() makes the call, instead of backward_weights()
};

/// Properties of a layer that fusions (net/fusion) and the step plan (net/plan) use. The defaults fit every layer.
struct LayerTraits {
  /// An input whose gradient backward() writes and checks for overflow (LayerIo::overflow) in the same pass.
  std::optional<size_t> searches_gradient_of{};
  /// Whether backward() writes all of d_weights, so that backward_weights() does nothing. no: never.
  /// with_gradient_of_input: only if backward() also writes the gradient of the input.
  enum class WeightsInBackward { no, with_gradient_of_input, always } weights_in_backward = WeightsInBackward::no;
  /// The calls of ops::weight_gradient(), which the step plan schedules. Calls in backward_weights() must not use
  /// memory that backward passes of other layers use.
  std::vector<WeightProduct> weight_products{};
  /// Whether forward() and backward() run best on a side stream, concurrently with independent layers. Such a layer
  /// leaves most of a GPU idle and uses no transient memory.
  bool runs_aside = false;
  /// The function that an element-wise layer applies to each element of its only input; none for other layers.
  std::optional<ElementFunction> element_function{};
  /// Indices of inputs. If the layer that wrote such an input ends with ReLU, this layer's backward() can compute that
  /// ReLU's drelu, given LayerIo::below.
  std::vector<size_t> finishes_relu_of{};
};

/// The tensors of a layer for given input shapes, fixed before the first step.
struct LayerSpec {
  Specs outputs;
  std::vector<WeightSpec> weights{};  ///< in the order of the dense model file
  std::vector<StateSpec> state{};
  /// written by forward() and unchanged until backward(). If a reader computes this layer's drelu (ReluEnd), the
  /// reader's backward(), which runs earlier, may already change the contents
  Specs scratch{};
  std::vector<size_t> scratch_of_backward{};  ///< indices into `scratch` of entries that evaluation does not need
  /// Memory shared by all layers. The contents are valid during forward(), and from the start of backward() to the end
  /// of backward_weights().
  Specs transient{};
  /// number of weights whose GEMMs run in FP8, forward and backward, with scaled tensors (LayerIo::fp8)
  size_t fp8_products = 0;
  /// How outputs may share memory with inputs. A hint for the memory plan. Layers call ops::copy in any case, which is
  /// a no-op if both tensors are the same memory.
  enum class Memory { own, reshape_of_input, columns_of_inputs } memory = Memory::own;
  /// Whether the gradient of every input equals the gradient of the only output. A hint for the memory plan.
  bool hands_gradient_on = false;
  /// [output] the input column at which the output begins, if every output is a range of adjacent columns of the only
  /// input.
  std::vector<int64_t> first_columns{};
  LayerTraits traits{};
};

/// The tensors that a layer needs to compute the drelu of the preceding layer.
using ops::ReluEnd;

/// The layers that a loss runs (LogitLoss): the layer of its logits and, optionally, the Add after that layer.
struct LogitIo {
  ops::LogitLayer layer;
  std::optional<ops::LogitSum> sum;
};

/// The tensors of one call. Two tensors alias only if the memory plan followed a hint of LayerSpec.
struct LayerIo {
  std::vector<Tensor> in, out, weights, state, scratch, transient;
  /// [weight] the transposed copy that ops::transpose_weights() writes; none for a weight without a copy. The vector is
  /// empty if no weight has a copy.
  std::vector<std::optional<Tensor>> transposed{};
  std::vector<ops::Fp8ProductScaling> fp8{};  ///< one for each of LayerSpec::fp8_products
  std::vector<std::optional<Tensor>> d_in;    ///< [input] none if the gradient is not needed, for example for data
  std::vector<Tensor> d_out, d_weights;       ///< d_out is empty for a loss
  /// [input] the tensors of the layer that wrote the input, if this layer computes that layer's drelu
  /// (FusableLayer::finished_by_reader()); otherwise none. The vector is empty if this layer computes no other layer's
  /// drelu.
  std::vector<std::optional<ReluEnd>> below{};
  ops::OverflowSearch overflow{};  ///< overflow check for the gradient of LayerTraits::searches_gradient_of
  /// Overflow check for operands of wgrads that are deferred to Context::last_launches(): backward() checks those
  /// operands that it reads anyway.
  ops::OverflowSearch operands{};
  std::optional<LogitIo> logit{};  ///< set in training for a loss that runs other layers
  /// Replaces a tensor by its sum over all ranks, for statistics of the global batch. A no-op on one rank.
  std::function<void(Context&, const Tensor&)> sum_over_ranks = [](Context&, const Tensor&) {};
};

/// An invalid shape or value that a layer finds when it receives its inputs. `field`: the path of the config field in
/// the layer's section ("leading_dim", "bottom/1"), which completes the JSON pointer.
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
  /// Overwrites every present d_in. Overwrites every d_weight that backward_weights() does not write. If several layers
  /// read a tensor, the network sums the tensor's gradients.
  virtual void backward(Context&, const LayerIo&) const = 0;
  /// Writes the wgrads that backward() did not write. Called after backward(), possibly while preceding layers already
  /// read d_in.
  virtual void backward_weights(Context&, const LayerIo&) const {}
  /// Adds the operators of forward() in evaluation to an ONNX graph, for exports. Each output has its given name.
  /// Errors: LayerError with the reason and an alternative if ONNX has no equivalent. The default implementation throws
  /// LayerError.
  virtual void to_onnx(OnnxGraph&, const OnnxIo&) const;
};

/// A loss layer: in = {logits, label}, out = {loss [1], prediction [batch, width]}. The backward pass starts at losses.
/// out[0] is the unweighted loss; backward() writes the gradient of weight() * loss.
class LossLayer : public Layer {
 public:
  /// The weight of this loss in the weighted sum of a model's losses.
  virtual double weight() const = 0;
  /// A regularizer for all dense weights, set in the section of a loss.
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
