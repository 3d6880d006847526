// Concat: its inputs side by side.
#include "layers/layer_type.h"
#include "ops/copy.h"

namespace hctr {
namespace {

class Concat : public Layer {
 public:
  Concat(const std::string&, NoParams) {}

  LayerPlan plan(const Specs& inputs) const override {
    int64_t width = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string field = cat("bottom/", i);
      need_rank(inputs[i], 2, field, "Concat");
      if (inputs[i].rows() != inputs[0].rows())
        throw PlanError(field, cat("Concat takes tensors with equally many rows: the first has ", inputs[0].rows(), ", this one ", inputs[i].rows()));
      width += inputs[i].shape[1];
    }
    return {.outputs = {TensorSpec(inputs[0].dtype, {inputs[0].rows(), width})}, .memory = LayerPlan::Memory::columns_of_inputs};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    int64_t at = 0;
    for (const Tensor& x : io.in) {
      ops::copy(ctx, x, io.out[0].columns(at, at + x.dim(1)));
      at += x.dim(1);
    }
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    int64_t at = 0;
    for (size_t i = 0; i < io.in.size(); ++i) {
      const int64_t width = io.in[i].dim(1);
      if (io.d_in[i]) ops::copy(ctx, io.d_out[0].columns(at, at + width), *io.d_in[i]);
      at += width;
    }
  }
};

}  // namespace

LayerType concat() {
  return LayerType::of<Concat>("Concat", "y = [x_0 | x_1 | ...]: columns in listing order", {1, kAnyNumber}, {1, 1}, Schema<NoParams>("Concat"));
}

}  // namespace hctr
