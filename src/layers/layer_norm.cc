// LayerNorm: every row of the last dimension gets mean 0 and variance 1, then is scaled and shifted.
#include "ops/layer_norm.h"

#include "layers/layer_type.h"

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

  LayerPlan plan(const Specs& inputs) const override {
    const Shape& shape = inputs[0].shape;
    if (shape.rank() < 2)
      throw PlanError("bottom",
                      cat("LayerNorm takes a tensor of 2 to 4 dimensions, and this one has shape ", to_string(shape)));
    const int64_t n = shape[shape.rank() - 1];
    const InitialValues one{InitialValues::Kind::constant, 1}, zero{};
    return {.outputs = {TensorSpec(inputs[0].dtype, shape)},
            .weights = {{"gamma", {n}, params_.gamma_init == Initializer::zero ? zero : one, false},
                        {"beta", {n}, zero, false}},
            .scratch = {ops::layer_norm_stats(inputs[0]), ops::column_sums_scratch(n)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::layer_norm(ctx, io.in[0], io.weights[0], io.weights[1], static_cast<float>(params_.eps), io.scratch[0],
                    io.out[0]);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::layer_norm_weight_gradients(ctx, io.in[0], io.d_out[0], io.scratch[0], io.scratch[1], io.d_weights[0],
                                     io.d_weights[1]);
    if (io.d_in[0]) ops::layer_norm_backward(ctx, io.in[0], io.d_out[0], io.weights[0], io.scratch[0], *io.d_in[0]);
  }

 private:
  LayerNormParams params_;
};

Schema<LayerNormParams> schema() {
  using P = LayerNormParams;
  return Schema<P>("LayerNorm", "ln_param")
      .opt("eps", &P::eps, "added to the variance", more_than(0))
      .opt("gamma_init", &P::gamma_init, "initial value of gamma: Zero; left out: 1")
      .opt("beta_init", &P::beta_init, "initial value of beta: Zero, also when left out")
      .together([](P& p, const std::string& pointer, Problems& problems) {
        const auto has_word = [](Initializer word) {
          return word == Initializer::by_default || word == Initializer::zero;
        };
        if (!has_word(p.gamma_init))
          problems.note(pointer + "/gamma_init", "LayerNorm supports only Zero; gamma starts at 1");
        if (!has_word(p.beta_init))
          problems.note(pointer + "/beta_init", "LayerNorm supports only Zero; beta starts at 0");
      });
}

}  // namespace

LayerType layer_norm() {
  return LayerType::of<LayerNorm>("LayerNorm", "y = gamma (x - mean) / sqrt(var + eps) + beta over the last dimension",
                                  {1, 1}, {1, 1}, schema());
}

}  // namespace hctr
