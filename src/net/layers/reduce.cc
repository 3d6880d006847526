// ReduceSum and ReduceMean: sums and means along an axis.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/reduce_axis.h"

namespace hctr {
namespace {

struct ReduceParams {
  int64_t axis = 0;
};

template <bool kMean>
class Reduce : public Layer {
 public:
  static constexpr const char* kType = kMean ? "ReduceMean" : "ReduceSum";

  Reduce(const std::string&, ReduceParams params) : axis_(static_cast<int>(params.axis)) {}

  LayerSpec spec(const Specs& inputs) const override {
    Shape shape = inputs[0].shape;
    if (shape.rank() != 2 && shape.rank() != 3)
      throw LayerError("bottom", cat(kType, " takes a tensor of 2 or 3 dimensions, found shape ", to_string(shape)));
    if (axis_ >= shape.rank())
      throw LayerError("axis", cat("axis ", axis_, " of a tensor of shape ", to_string(shape), ": its axes are 0 to ",
                                   shape.rank() - 1));
    shape[axis_] = 1;
    return {.outputs = {TensorSpec(inputs[0].dtype, shape)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::sum_axis(ctx, io.in[0], axis_, factor(io.in[0]), io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    if (kMean) return graph.add_as(io.y(), "ReduceMean", {io.x()}, {{"axes", std::vector<int64_t>{axis_}}});
    graph.add_as(io.y(), "ReduceSum", {io.x(), graph.numbers({axis_})});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::spread_axis(ctx, io.d_out[0], axis_, factor(io.in[0]), *io.d_in[0]);
  }

 private:
  float factor(const Tensor& x) const { return kMean && x.dim(axis_) > 0 ? 1 / static_cast<float>(x.dim(axis_)) : 1; }

  int axis_;
};

template <bool kMean>
LayerType reduce(const char* formula) {
  using P = ReduceParams;
  constexpr const char* kType = Reduce<kMean>::kType;
  return LayerType::of<Reduce<kMean>>(
      kType, formula, {1, 1}, {1, 1},
      Schema<P>(kType).need("axis", &P::axis, "the axis to reduce, which keeps size 1; 0 is the batch", between(0, 2)));
}

}  // namespace

LayerType reduce_mean() { return reduce<true>("y = mean of x along the axis"); }
LayerType reduce_sum() { return reduce<false>("y = sum of x along the axis"); }

}  // namespace hctr
