// What a layer is: its parameters, its shapes and a few operator calls. It owns no memory and knows no device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/context.h"
#include "device/tensor.h"
#include "layers/initializer.h"

namespace hctr {

using Specs = std::vector<TensorSpec>;

enum class Phase { train, evaluate };

/// A weight: its name inside the layer, shape, and how it starts. The master copy is f32; a layer gets it in the type
/// of its activations and gives its gradient in f32.
struct WeightSpec {
  std::string name;
  Shape shape;
  InitialValues start;
  bool penalised = true;  ///< whether a regularizer applies to it
};

/// Something a layer carries from step to step that is no weight: running statistics. f32; training writes, evaluation
/// reads.
struct StateSpec {
  std::string name;
  Shape shape;
  float start = 0;
  std::optional<float> when_absent{};  ///< the value where a file lacks it; none: such a file does not fit
};

/// What a layer needs, settled before the first step.
struct LayerPlan {
  Specs outputs;
  std::vector<WeightSpec> weights{};  ///< in the order of the dense model file
  std::vector<StateSpec> state{};
  Specs scratch{};  ///< written by forward, still there in backward
  /// Where outputs could lie without a copy. A hint to the memory plan: layers copy with ops::copy, which does nothing
  /// when both tensors are the same memory.
  enum class Memory { own, reshape_of_input, columns_of_inputs } memory = Memory::own;
  /// Where each output holds neighbouring columns of the only input: the first of them, for each output.
  std::vector<int64_t> first_columns{};
};

/// The tensors of one call. All distinct memory unless the plan's hint was taken.
struct LayerIo {
  std::vector<Tensor> in, out, weights, state, scratch;
  std::vector<std::optional<Tensor>> d_in;  ///< absent where nobody needs the gradient: of data, say
  std::vector<Tensor> d_out, d_weights;     ///< a loss has no d_out
  /// Makes a tensor the sum of all ranks' tensors: for what a layer takes from the whole batch. On one rank it is that
  /// already.
  std::function<void(Context&, const Tensor&)> sum_over_ranks = [](Context&, const Tensor&) {};
};

/// A shape or value that does not fit, found while planning. `field` is the place inside the section ("leading_dim",
/// "bottom/1"), to complete the JSON pointer.
class PlanError : public Error {
 public:
  PlanError(std::string field, const std::string& message) : Error(Kind::config, message), field_(std::move(field)) {}
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

class Layer {
 public:
  virtual ~Layer() = default;
  /// Shapes of outputs, weights and scratch for these inputs. Pure. Errors: PlanError.
  virtual LayerPlan plan(const Specs& inputs) const = 0;
  virtual void forward(Context&, const LayerIo&, Phase) const = 0;
  /// Writes every present d_in and every d_weight (overwrites), or leaves d_weights to backward_weights(). The network
  /// sums gradients of tensors that several layers read.
  virtual void backward(Context&, const LayerIo&) const = 0;
  /// What backward() has left, once it is done: gradients of weights that can wait until gradients of inputs are on
  /// their way.
  virtual void backward_weights(Context&, const LayerIo&) const {}
};

/// A layer that ends a branch: in = {logits, label}, out = {loss [1], prediction [batch, width]}, and backward starts
/// here. The loss is as its formula says; its gradient is that of weight() times it.
class LossLayer : public Layer {
 public:
  /// What the loss counts in the sum of all losses of a model.
  virtual double weight() const = 0;
  /// The regularizer that the loss section carries, for all dense weights.
  struct Regularizer {
    enum class Kind { none, l1, l2 } kind = Kind::none;
    double lambda = 0;
  };
  virtual Regularizer regularizer() const = 0;
};

/// Throws PlanError unless the tensor has `rank` dimensions.
void need_rank(const TensorSpec&, int rank, const std::string& field, const std::string& layer_type);
/// Throws PlanError unless all inputs have the shape of the first.
void need_one_shape(const Specs& inputs, const std::string& layer_type);

}  // namespace hctr
