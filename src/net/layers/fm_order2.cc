// FmOrder2: the second-order term of a factorization machine.
#include "ops/dense/fm_order2.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"

namespace hctr {
namespace {

struct FmOrder2Params {
  int64_t out_dim = 0;
};

class FmOrder2 : public Layer {
 public:
  FmOrder2(const std::string&, FmOrder2Params params) : dim_(params.out_dim) {}

  LayerSpec spec(const Specs& inputs) const override {
    const TensorSpec& x = inputs[0];
    if (x.row_elements() % dim_ != 0)
      throw LayerError("out_dim",
                       cat("rows of ", x.row_elements(), " elements cannot be divided into vectors of ", dim_,
                           ": out_dim must divide the width of a tensor of shape ", to_string(x.shape)));
    return {.outputs = {TensorSpec(x.dtype, {x.rows(), dim_})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::fm_order2(ctx, flat(io.in[0]), io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const int64_t vectors = io.in[0].shape.elements() / io.in[0].shape[0] / dim_;
    const std::string e = graph.add("Reshape", {io.x(), graph.numbers({-1, vectors, dim_})}), axis = graph.numbers({1});
    const auto sum = [&](const std::string& x) {
      return graph.add("ReduceSum", {x, axis}, {{"keepdims", int64_t{0}}});
    };
    const std::string sum_e = sum(e), squares = sum(graph.add("Mul", {e, e}));
    const std::string twice = graph.add("Sub", {graph.add("Mul", {sum_e, sum_e}), squares});
    graph.add_as(io.y(), "Mul", {twice, graph.number(0.5f)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::fm_order2_backward(ctx, flat(io.in[0]), io.d_out[0], flat(*io.d_in[0]));
  }

 private:
  static Tensor flat(const Tensor& t) { return t.reshaped({t.rows(), t.row_elements()}); }

  int64_t dim_;
};

}  // namespace

LayerType fm_order2() {
  using P = FmOrder2Params;
  return LayerType::of<FmOrder2>(
      "FmOrder2",
      "y = 1/2 ((sum of e_j)^2 - sum of e_j^2), where each row of x consists of vectors e_j of length "
      "out_dim",
      {1, 1}, {1, 1},
      Schema<P>("FmOrder2")
          .need("out_dim", &P::out_dim, "length of the vectors e_j, and number of columns of y", count_from(1)));
}

}  // namespace hctr
