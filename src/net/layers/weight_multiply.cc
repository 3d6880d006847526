// WeightMultiply: multiplies each element of a row by a trainable vector. Multiply is an older name of this layer.
#include "ops/dense/weight_multiply.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"

namespace hctr {
namespace {

struct WeightMultiplyParams {
  std::vector<int64_t> weight_dims;
  Initializer weight_init = Initializer::by_default;
};

class WeightMultiply : public Layer {
 public:
  WeightMultiply(const std::string&, WeightMultiplyParams params) : params_(std::move(params)) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom", "WeightMultiply");
    const int64_t slots = params_.weight_dims[0], dim = params_.weight_dims[1], batch = inputs[0].rows();
    if (slots != inputs[0].shape[1])
      throw LayerError("weight_dims/0", cat(slots, " vectors for a tensor of shape ", to_string(inputs[0].shape),
                                            ": expected one vector for each column, ", inputs[0].shape[1]));
    const Initializer word =
        params_.weight_init == Initializer::by_default ? Initializer::xavier_uniform : params_.weight_init;
    return {.outputs = {TensorSpec(inputs[0].dtype, {batch, slots * dim})},
            .weights = {{"weights",
                         {slots, dim},
                         initial_values(word, static_cast<double>(slots), static_cast<double>(slots * dim))}},
            .scratch = {ops::weight_multiply_scratch(batch, slots, dim)},
            .scratch_of_backward = {0}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::weight_multiply(ctx, io.in[0], io.weights[0], io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const std::string x = graph.add("Unsqueeze", {io.x(), graph.numbers({2})});
    graph.add_as(io.y(), "Reshape", {graph.add("Mul", {x, io.weights[0]}), graph.rows_of(io.out[0].shape)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::weight_multiply_backward(ctx, io.in[0], io.weights[0], io.d_out[0], io.scratch[0], io.d_in[0],
                                  io.d_weights[0]);
  }

 private:
  WeightMultiplyParams params_;
};

void check_weight_multiply_params(WeightMultiplyParams& params, const std::string& pointer, Problems& problems) {
  if (params.weight_dims.size() != 2)
    problems.error(pointer + "/weight_dims", cat("is [slots, dim], two numbers; found ", params.weight_dims.size()));
}

LayerType named(const char* name) {
  using P = WeightMultiplyParams;
  return LayerType::of<WeightMultiply>(
      name, "y[s dim + k] = x[s] W[s,k], W [slots, dim]", {1, 1}, {1, 1},
      Schema<P>(name)
          .need("weight_dims", &P::weight_dims,
                "[slots, dim]: number of columns of x, and length of the weight "
                "vector of each column",
                count_from(1))
          .opt("weight_init", &P::weight_init, "initial values of W; default: XavierUniform")
          .together(check_weight_multiply_params));
}

}  // namespace

LayerType multiply() { return named("Multiply"); }
LayerType weight_multiply() { return named("WeightMultiply"); }

}  // namespace hctr
