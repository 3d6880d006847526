// Reshape: the same elements in rows of another length.
#include "layers/layer_type.h"
#include "ops/copy.h"

namespace hctr {
namespace {

struct ReshapeParams {
  std::optional<int64_t> leading_dim;
};

class Reshape : public Layer {
 public:
  Reshape(const std::string&, ReshapeParams params) : params_(params) {}

  LayerPlan plan(const Specs& inputs) const override {
    const Shape& in = inputs[0].shape;
    const int64_t elements = in.elements();
    const int64_t width = params_.leading_dim.value_or(inputs[0].row_elements());
    const int64_t last = in[in.rank() - 1];
    if (width % last != 0 || elements % width != 0) {
      std::string could = cat("one that fits is ", inputs[0].row_elements(), ": all of a row");
      throw PlanError("leading_dim", cat("a tensor of shape ", to_string(in), " cannot become rows of ", width,
                                         ": leading_dim must be a multiple of its last dimension (", last,
                                         ") and divide its ", elements, " elements; ", could));
    }
    return {.outputs = {TensorSpec(inputs[0].dtype, {elements / width, width})}, .memory = LayerPlan::Memory::reshape_of_input};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override { ops::copy(ctx, io.in[0], io.out[0]); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::copy(ctx, io.d_out[0], *io.d_in[0]);
  }

 private:
  ReshapeParams params_;
};

}  // namespace

LayerType reshape() {
  using P = ReshapeParams;
  return LayerType::of<Reshape>("Reshape", "y = the elements of x, in order, in rows of leading_dim", {1, 1}, {1, 1},
                                Schema<P>("Reshape").opt("leading_dim", &P::leading_dim,
                                                         "length of a row of y (its last dimension); left out: all of a row of x", at_least(1)));
}

}  // namespace hctr
