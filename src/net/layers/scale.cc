// Scale (HugeCTR's name): repeats elements or rows.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "net/layers/sum_of.h"
#include "ops/common/reduce_axis.h"
#include "ops/common/strided_items.h"

namespace hctr {
namespace {

struct ScaleParams {
  int64_t axis = 1, factor = 1;
};

class Scale : public Layer {
 public:
  Scale(const std::string&, ScaleParams params) : params_(params) {}

  LayerSpec spec(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom", "Scale");
    const int64_t rows = inputs[0].rows(), columns = inputs[0].shape[1], n = params_.factor;
    return {.outputs = {TensorSpec(inputs[0].dtype, elements() ? Shape{rows, columns * n} : Shape{rows * n, columns})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    const Tensor &x = io.in[0], &y = io.out[0];
    if (elements())
      ops::spread_axis(ctx, x.reshaped({x.dim(0), x.dim(1), 1}), 2, 1, repeats(y, x));
    else
      ops::copy_items(ctx, ops::StridedItems::runs_of_rows(x, 1).repeated(params_.factor),
                      ops::StridedItems::runs_of_rows(y, params_.factor));
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const std::string axis = graph.numbers({elements() ? 2 : 1});
    const std::string apart = graph.add("Unsqueeze", {io.x(), axis});
    std::vector<int64_t> repeats = {1, 1, 1};
    repeats[elements() ? 2 : 1] = params_.factor;
    graph.add_as(io.y(), "Reshape",
                 {graph.add("Tile", {apart, graph.numbers(repeats)}), graph.rows_of(io.out[0].shape)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (!io.d_in[0]) return;
    const Tensor &d_x = *io.d_in[0], &d_y = io.d_out[0];
    if (elements()) return ops::sum_axis(ctx, repeats(d_y, d_x), 2, 1, d_x.reshaped({d_x.dim(0), d_x.dim(1), 1}));
    std::vector<Tensor> copies;  // copies[i]: the i-th copy of every row
    const TensorSpec copy(d_y.dtype(), d_x.shape(), params_.factor * d_y.row_stride());
    for (int64_t i = 0; i < params_.factor; ++i)
      copies.emplace_back(d_y.bytes() + static_cast<size_t>(i * d_y.row_stride()) * size_of(d_y.dtype()), copy,
                          d_y.device());
    sum_of(ctx, copies, d_x);
  }

 private:
  bool elements() const { return params_.axis == 0; }
  Tensor repeats(const Tensor& y, const Tensor& x) const { return y.reshaped({x.dim(0), x.dim(1), params_.factor}); }

  ScaleParams params_;
};

}  // namespace

LayerType scale() {
  using P = ScaleParams;
  return LayerType::of<Scale>(
      "Scale",
      "y = x with repeated elements. axis 0: every element of a row is repeated factor times; axis 1: "
      "every row is repeated factor times",
      {1, 1}, {1, 1},
      Schema<P>("Scale", "scale_param")
          .opt("axis", &P::axis, "0: y is [rows, columns * factor]; 1: y is [rows * factor, columns]", between(0, 1))
          .need("factor", &P::factor, "number of times that each element or row appears in y", count_from(1)));
}

}  // namespace hctr
