// LayerNorm: normalizes every row of the last dimension to mean 0 and variance 1, then scales and shifts the row.
#include "ops/dense/layer_norm.h"

#include "net/layers/gamma_beta.h"
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"

namespace hctr {
namespace {

struct LayerNormParams {
  double eps = 1e-5;
  Initializer gamma_init = Initializer::by_default;
  Initializer beta_init = Initializer::by_default;
};

class LayerNorm : public Layer {
 public:
  LayerNorm(const std::string&, LayerNormParams params) : params_(params) {}

  LayerSpec spec(const Specs& inputs) const override {
    const Shape& shape = inputs[0].shape;
    if (shape.rank() < 2)
      throw LayerError("bottom", cat("LayerNorm takes a tensor of 2 to 4 dimensions, found shape ", to_string(shape)));
    const int64_t n = shape[shape.rank() - 1];
    return {.outputs = {TensorSpec(inputs[0].dtype, shape)},
            .weights = gamma_beta_weights(params_.gamma_init, n),
            .scratch = {ops::layer_norm_stats(inputs[0]), ops::column_sums_scratch(n)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::layer_norm(ctx, io.in[0], io.weights[0], io.weights[1], static_cast<float>(params_.eps), io.scratch[0],
                    io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const OnnxGraph::Attributes last = {{"axes", std::vector<int64_t>{-1}}};
    const std::string centred = graph.add("Sub", {io.x(), graph.add("ReduceMean", {io.x()}, last)});
    const std::string var = graph.add("ReduceMean", {graph.add("Mul", {centred, centred})}, last);
    const std::string deviation =
        graph.add("Sqrt", {graph.add("Add", {var, graph.number(static_cast<float>(params_.eps))})});
    const std::string scaled = graph.add("Mul", {graph.add("Div", {centred, deviation}), io.weights[0]});
    graph.add_as(io.y(), "Add", {scaled, io.weights[1]});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::layer_norm_weight_gradients(ctx, io.in[0], io.d_out[0], io.scratch[0], io.scratch[1], io.d_weights[0],
                                     io.d_weights[1]);
    if (io.d_in[0]) ops::layer_norm_backward(ctx, io.in[0], io.d_out[0], io.weights[0], io.scratch[0], *io.d_in[0]);
  }

 private:
  LayerNormParams params_;
};

Schema<LayerNormParams> layer_norm_schema() {
  using P = LayerNormParams;
  Schema<P> schema("LayerNorm", "ln_param");
  schema.opt("eps", &P::eps, "added to the variance", more_than(0));
  add_gamma_beta(schema, "LayerNorm");
  return schema;
}

}  // namespace

LayerType layer_norm() {
  return LayerType::of<LayerNorm>("LayerNorm", "y = gamma (x - mean) / sqrt(var + eps) + beta over the last dimension",
                                  {1, 1}, {1, 1}, layer_norm_schema());
}

}  // namespace hctr
