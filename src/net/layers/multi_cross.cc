// MultiCross: the cross network of DCN, with a weight vector or a weight matrix per layer.
#include "ops/dense/multi_cross.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/dense/cross_gate.h"
#include "ops/dense/cross_product.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/linear.h"

namespace hctr {
namespace {

using ops::Transpose;

struct MultiCrossParams {
  int64_t num_layers = 0;
  int64_t projection_dim = 0;
  bool full_matrix = false;
  Initializer weight_init = Initializer::by_default, bias_init = Initializer::by_default;
};

class MultiCross : public Layer {
 public:
  MultiCross(const std::string&, MultiCrossParams params)
      : params_(params), layers_(static_cast<size_t>(params.num_layers)) {}

  LayerSpec spec(const Specs& inputs) const override {
    const TensorSpec& x = inputs[0];
    need_rank(x, 2, "bottom", "MultiCross");
    const int64_t batch = x.rows(), dim = x.shape[1], rank = params_.projection_dim;
    LayerSpec spec{.outputs = {TensorSpec(x.dtype, x.shape)}};
    for (size_t l = 0; l < layers_; ++l) {
      if (vectors())
        spec.weights.push_back({cat("weights_", l), {1, dim}, start(dim, dim)});
      else if (low_rank())
        spec.weights.insert(spec.weights.end(), {{cat("u_", l), {dim, rank}, start(dim, rank)},
                                                 {cat("v_", l), {rank, dim}, start(rank, dim)}});
      else
        spec.weights.push_back({cat("weights_", l), {dim, dim}, start(dim, dim)});
      const Shape bias = vectors() ? Shape{1, dim} : Shape{dim};
      spec.weights.push_back({cat("bias_", l), bias, initial_values(params_.bias_init, 0, static_cast<double>(dim))});
    }
    if (vectors()) {
      // Layers with weight vectors run no GEMMs and need no GEMM workspace, so they can run concurrently with other
      // layers. With more than kMostSamples samples this saves no time, because their kernels fill the GPU.
      constexpr int64_t kMostSamples = 2048;
      spec.traits.runs_aside = batch <= kMostSamples;
      spec.scratch = {ops::multi_cross_scratch(batch, dim, params_.num_layers)};
    } else {
      const TensorSpec like_x(x.dtype, x.shape), none(x.dtype, {0, 1});
      const TensorSpec narrow = low_rank() ? TensorSpec(x.dtype, {batch, rank}) : none;
      for (size_t l = 0; l < layers_; ++l)  // in the order of LayerScratch
        spec.scratch.insert(spec.scratch.end(),
                            {l > 0 ? like_x : none, like_x, narrow, ops::cross_product_scratch(batch, dim)});
      spec.transient = {like_x, narrow};
    }
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    if (vectors()) return ops::multi_cross(ctx, io.in[0], vectors_of(io.weights), io.scratch[0], io.out[0]);
    for (size_t l = 0; l < layers_; ++l) {
      const Tensor y = input_of(io, l);
      if (low_rank())
        ops::matmul(ctx, y, Transpose::no, weight(io.weights, l, 0), Transpose::no, of_layer(io, l, kNarrow));
      ops::cross_product(ctx, low_rank() ? of_layer(io, l, kNarrow) : y, weight(io.weights, l, low_rank() ? 1 : 0),
                         bias(io.weights, l), io.in[0], y, of_layer(io, l, kProduct),
                         l + 1 < layers_ ? input_of(io, l + 1) : io.out[0]);
    }
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    std::string y = io.x();
    const std::string* weight = io.weights.data();
    for (size_t l = 0; l < layers_; ++l, weight += low_rank() ? 3 : 2) {
      const std::string next = l + 1 < layers_ ? graph.name("y") : io.y();
      if (vectors()) {
        const std::string h = graph.add("Gemm", {y, weight[0]}, {{"transB", int64_t{1}}});
        graph.add_as(next, "Sum", {graph.add("Mul", {io.x(), h}), y, weight[1]});
      } else {
        const std::string narrow = low_rank() ? graph.add("MatMul", {y, weight[0]}) : y;
        const std::string product = low_rank() ? graph.add("Gemm", {narrow, weight[1], weight[2]})
                                               : graph.add("Gemm", {y, weight[0], weight[1]});
        graph.add_as(next, "Add", {graph.add("Mul", {io.x(), product}), y});
      }
      y = next;
    }
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (vectors())
      return ops::multi_cross_backward(ctx, io.in[0], vectors_of(io.weights), io.d_out[0], io.scratch[0], io.d_in[0],
                                       vectors_of(io.d_weights));
    const Tensor &x = io.in[0], &d_product = io.transient[0], &d_narrow = io.transient[1];
    const std::optional<Tensor>& d_x = io.d_in[0];
    ops::CrossGates gates;
    for (size_t l = 0; l < layers_; ++l) {
      gates.t.push_back(of_layer(io, l, kProduct));
      gates.d_y.push_back(l + 1 < layers_ ? input_of(io, l + 1) : io.d_out[0]);
    }
    // Whether the GEMM of layer l + 1, which runs before layer l, has already written d_product of layer l.
    bool gated = false;
    for (size_t l = layers_; l-- > 0;) {
      const Tensor &y = input_of(io, l), &sums = of_layer(io, l, kBiasSums), &d_bias = bias(io.d_weights, l);
      if (gated && l == 0 && d_x)
        ops::cross_gates_gradient(ctx, gates, gates.t[0]);
      else if (l == 0 && d_x)
        ops::first_cross_gate_backward(ctx, x, gates, d_product, d_bias, sums, gates.t[0]);
      else if (!gated)
        ops::cross_gate_backward(ctx, x, gates.d_y[l], d_product, d_bias, sums);
      if (low_rank()) ops::matmul(ctx, d_product, Transpose::no, weight(io.weights, l, 1), Transpose::yes, d_narrow);
      if (l > 0) gradients_of_matrices(ctx, io, l);
      const Tensor& d_of_y = low_rank() ? d_narrow : d_product;
      // The gradient of y_l overwrites y_l, which is not read any more. gates.t[0] holds the other summand of the
      // gradient of x. In low-rank layers, the epilogue of this GEMM also writes d_product of layer l - 1. In full-rank
      // layers, d_product is an operand of this GEMM, so the epilogue must not overwrite it.
      gated = l > 0 && low_rank();
      if (gated)
        ops::cross_product_backward(ctx, d_of_y, weight(io.weights, l, 0), gates.d_y[l], x, y, d_product,
                                    bias(io.d_weights, l - 1), of_layer(io, l - 1, kBiasSums));
      else if (l > 0)
        ops::matmul_plus(ctx, d_of_y, Transpose::no, weight(io.weights, l, 0), Transpose::yes, gates.d_y[l], y);
      else if (d_x)
        ops::matmul_plus(ctx, d_of_y, Transpose::no, weight(io.weights, l, 0), Transpose::yes, gates.t[0], *d_x);
    }
  }

  /// Writes the wgrads of the first layer's matrices. backward() omits these, so that readers of the gradient of x,
  /// such as tables, start earlier.
  void backward_weights(Context& ctx, const LayerIo& io) const override {
    if (!vectors()) gradients_of_matrices(ctx, io, 0);
  }

 private:
  /// Writes the wgrads of layer l. Transient memory holds the gradients of the layer's GEMM outputs.
  void gradients_of_matrices(Context& ctx, const LayerIo& io, size_t l) const {
    const Tensor &y = input_of(io, l), &d_product = io.transient[0], &d_narrow = io.transient[1];
    if (low_rank())
      ops::matmul(ctx, of_layer(io, l, kNarrow), Transpose::yes, d_product, Transpose::no, weight(io.d_weights, l, 1));
    ops::matmul(ctx, y, Transpose::yes, low_rank() ? d_narrow : d_product, Transpose::no, weight(io.d_weights, l, 0));
  }

  /// Scratch of one layer with weight matrices: its input y_l (x for the first layer), W y + b, U^T y, and workspace
  /// for the bias gradient. Transient memory holds the gradients of W y + b and of U^T y.
  enum LayerScratch : size_t { kInput, kProduct, kNarrow, kBiasSums, kOfLayer };

  bool vectors() const { return params_.projection_dim == 0 && !params_.full_matrix; }
  bool low_rank() const { return params_.projection_dim > 0; }

  InitialValues start(int64_t in, int64_t out) const {
    const Initializer word =
        params_.weight_init == Initializer::by_default ? Initializer::xavier_uniform : params_.weight_init;
    return initial_values(word, static_cast<double>(in), static_cast<double>(out));
  }
  ops::CrossWeights vectors_of(const std::vector<Tensor>& weights) const {
    ops::CrossWeights split;
    for (size_t l = 0; l < layers_; ++l) {
      split.w.push_back(weights[2 * l]);
      split.b.push_back(weights[2 * l + 1]);
    }
    return split;
  }
  const Tensor& weight(const std::vector<Tensor>& weights, size_t l, size_t i) const {
    return weights[l * (low_rank() ? 3 : 2) + i];
  }
  const Tensor& bias(const std::vector<Tensor>& weights, size_t l) const {
    return weight(weights, l, low_rank() ? 2 : 1);
  }
  static const Tensor& of_layer(const LayerIo& io, size_t l, LayerScratch which) {
    return io.scratch[kOfLayer * l + which];
  }
  static const Tensor& input_of(const LayerIo& io, size_t l) { return l == 0 ? io.in[0] : of_layer(io, l, kInput); }

  MultiCrossParams params_;
  size_t layers_;
};

void check_multi_cross_params(MultiCrossParams& params, const std::string& pointer, Problems& problems) {
  if (params.full_matrix && params.projection_dim > 0)
    problems.error(pointer + "/full_matrix",
                   "\"projection_dim\" and a full matrix exclude each other; remove one "
                   "of the two");
}

}  // namespace

LayerType multi_cross() {
  using P = MultiCrossParams;
  return LayerType::of<MultiCross>(
      "MultiCross",
      "y_0 = x; y_{l+1} = x <y_l, w_l> + y_l + b_l, or with matrices y_{l+1} = x * (y_l W_l + b_l) + y_l, W_l [d, d] "
      "or U_l V_l",
      {1, 1}, {1, 1},
      Schema<P>("MultiCross", "mc_param")
          .need("num_layers", &P::num_layers, "number of cross layers",
                between(1, static_cast<double>(ops::kMostCrossLayers)))
          .opt("projection_dim", &P::projection_dim,
               "rank of the matrices U_l [d, projection_dim] and V_l [projection_dim, d]; 0: vectors w_l instead "
               "of matrices",
               count_from(0))
          .opt("full_matrix", &P::full_matrix, "whole matrices W_l [d, d]")
          .opt("weight_init", &P::weight_init, "initial values of weights; default: XavierUniform")
          .opt("bias_init", &P::bias_init, "initial values of b_l; default: Zero")
          .together(check_multi_cross_params));
}

}  // namespace hctr
