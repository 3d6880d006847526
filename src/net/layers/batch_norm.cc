// BatchNorm: normalizes every column to mean 0 and variance 1 over the batch, then scales and shifts the column.
#include "ops/dense/batch_norm.h"

#include "net/layers/gamma_beta.h"
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/copy.h"

namespace hctr {
namespace {

struct BatchNormParams {
  Compatibility compatibility;
  double factor = 0, eps = 0;
  Initializer gamma_init = Initializer::by_default;
  Initializer beta_init = Initializer::by_default;
};

class BatchNorm : public Layer {
 public:
  BatchNorm(const std::string&, BatchNormParams params) : params_(params) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom", "BatchNorm");
    const int64_t n = inputs[0].shape[1];
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)},
            .weights = gamma_beta_weights(params_.gamma_init, n),
            .state = {{"mean", {n}}, {"var", {n}}, {"weight", {1}, 0, 1.0f}},
            .scratch = {ops::column_sums_scratch(n), TensorSpec(DType::f32, {2 * n + 1}),
                        TensorSpec(DType::f32, {2, n}), TensorSpec(DType::f32, {2, n})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase phase) const override {
    const ops::RunningStatistics running{io.state[0], io.state[1], io.state[2]};
    const Tensor &sums = io.scratch[1], &batch = io.scratch[2];
    const auto eps = static_cast<float>(params_.eps);
    if (phase == Phase::train) {
      ops::batch_norm_sums(ctx, io.in[0], running, io.scratch[0], sums);
      if (!params_.compatibility.batch_norm_per_gpu) io.sum_over_ranks(ctx, sums);
      ops::batch_norm_statistics(ctx, sums, static_cast<float>(params_.factor), eps, running, batch);
    } else {
      ops::batch_norm_running(ctx, running, eps, batch);
    }
    ops::batch_norm_apply(ctx, io.in[0], batch, io.weights[0], io.weights[1], io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const std::string &mean = io.state[0], &var = io.state[1], &weight = io.state[2];
    // Before the first batch, the `weight` of the running statistics is 0. The graph then uses mean 0 and variance 1.
    const std::string any = graph.add("Greater", {weight, graph.number(0.0f)}), one = graph.number(1.0f);
    const std::string total = graph.add("Where", {any, weight, one});
    const std::string unbiased_var = graph.add("Where", {any, graph.add("Div", {var, total}), one});
    graph.add_as(io.y(), "BatchNormalization",
                 {io.x(), io.weights[0], io.weights[1], graph.add("Div", {mean, total}), unbiased_var},
                 {{"epsilon", static_cast<float>(params_.eps)}});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    const Tensor &sums = io.scratch[1], &batch = io.scratch[2], &d_sums = io.scratch[3];
    const int64_t n = io.in[0].dim(1);
    ops::batch_norm_backward_sums(ctx, io.in[0], io.d_out[0], batch, io.scratch[0], d_sums);
    // Copy d_sums before sum_over_ranks() changes it, because the wgrads of all weights are summed over ranks later, in
    // one all-reduce.
    ops::copy(ctx, d_sums.row_range(1, 2).reshaped({n}), io.d_weights[0]);
    ops::copy(ctx, d_sums.row_range(0, 1).reshaped({n}), io.d_weights[1]);
    if (!params_.compatibility.batch_norm_per_gpu) io.sum_over_ranks(ctx, d_sums);
    if (io.d_in[0])
      ops::batch_norm_backward(ctx, io.in[0], io.d_out[0], batch, io.weights[0], sums, d_sums, *io.d_in[0]);
  }

 private:
  BatchNormParams params_;
};

Schema<BatchNormParams> batch_norm_schema() {
  using P = BatchNormParams;
  Schema<P> schema("BatchNorm", "bn_param");
  schema
      .need("factor", &P::factor,
            "weight of the current batch in the running mean and variance; 1: the last batch "
            "only",
            Range{.low = 0, .high = 1, .low_open = true})
      .need("eps", &P::eps, "added to the variance", more_than(0));
  add_gamma_beta(schema, "BatchNorm");
  return schema;
}

}  // namespace

LayerType batch_norm() {
  return LayerType::of<BatchNorm>("BatchNorm",
                                  "y = gamma (x - mean) / sqrt(var + eps) + beta per column; mean and var are "
                                  "statistics of the batch in training and running averages in evaluation",
                                  {1, 1}, {1, 1}, batch_norm_schema());
}

}  // namespace hctr
