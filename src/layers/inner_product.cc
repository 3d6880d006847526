// InnerProduct: the fully connected layer.
#include <cmath>

#include "layers/layer_type.h"
#include "ops/linear.h"

namespace hctr {
namespace {

struct InnerProductParams {
  int64_t num_output = 0;
  Initializer weight_init = Initializer::by_default;
  Initializer bias_init = Initializer::by_default;
};

class InnerProduct : public Layer {
 public:
  InnerProduct(const std::string&, InnerProductParams params) : params_(params) {}

  LayerPlan plan(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom", "InnerProduct");
    const int64_t in = inputs[0].shape[1], out = params_.num_output;
    const auto fan_in = static_cast<double>(in), fan_out = static_cast<double>(out);
    const InitialValues weights = initial_values(
        params_.weight_init == Initializer::by_default ? Initializer::xavier_norm : params_.weight_init, fan_in, fan_out);
    const InitialValues bias = params_.bias_init == Initializer::by_default
                                   ? InitialValues{InitialValues::Kind::normal, std::sqrt(1.0 / fan_out)}
                                   : initial_values(params_.bias_init, 0, fan_out);
    return {.outputs = {TensorSpec(inputs[0].dtype, {inputs[0].rows(), out})},
            .weights = {{"weights", {in, out}, weights}, {"bias", {out}, bias}}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::linear(ctx, io.in[0], io.weights[0], io.weights[1], io.out[0]);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::matmul(ctx, io.in[0], ops::Transpose::yes, io.d_out[0], ops::Transpose::no, io.d_weights[0]);
    ops::sum_rows(ctx, io.d_out[0], io.d_weights[1]);
    if (io.d_in[0]) ops::matmul(ctx, io.d_out[0], ops::Transpose::no, io.weights[0], ops::Transpose::yes, *io.d_in[0]);
  }

 private:
  InnerProductParams params_;
};

Schema<InnerProductParams> schema() {
  using P = InnerProductParams;
  return Schema<P>("InnerProduct", "fc_param")
      .need("num_output", &P::num_output, "columns of y", at_least(1))
      .opt("weight_init", &P::weight_init, "how W starts; left out: XavierNorm")
      .opt("bias_init", &P::bias_init, "how b starts; left out: normal with variance 1 / num_output");
}

}  // namespace

LayerType inner_product() {
  return LayerType::of<InnerProduct>("InnerProduct", "y = x W + b, W [in, num_output], b [num_output]", {1, 1}, {1, 1}, schema());
}

}  // namespace hctr
