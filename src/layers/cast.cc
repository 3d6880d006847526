// Cast: nothing. Activations have one type, and the program converts where it must; old files say where they did.
#include "layers/layer_type.h"
#include "ops/copy.h"

namespace hctr {
namespace {

class Cast : public Layer {
 public:
  Cast(const std::string&, NoParams) {}

  LayerPlan plan(const Specs& inputs) const override {
    return {.outputs = {TensorSpec(inputs[0].dtype, inputs[0].shape)}, .memory = LayerPlan::Memory::reshape_of_input};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override { ops::copy(ctx, io.in[0], io.out[0]); }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::copy(ctx, io.d_out[0], *io.d_in[0]);
  }
};

}  // namespace

LayerType cast() {
  return LayerType::of<Cast>(
      "Cast", "y = x; accepted for old files, with its gradient: types are converted where needed without it", {1, 1},
      {1, 1}, Schema<NoParams>("Cast"));
}

}  // namespace hctr
