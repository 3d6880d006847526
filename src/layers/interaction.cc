// Interaction: the dot products of all pairs of a sample's vectors, as in DLRM.
#include "ops/interaction.h"

#include "layers/layer_type.h"

namespace hctr {
namespace {

class Interaction : public Layer {
 public:
  Interaction(const std::string&, NoParams) {}

  LayerSpec spec(const Specs& inputs) const override {
    const Shape &dense = inputs[0].shape, &slots = inputs[1].shape;
    if (dense.rank() != 2)
      throw LayerError(
          "bottom/0",
          cat("Interaction reads a matrix [samples, dim] first, from the bottom MLP, and this one has shape ",
              to_string(dense)));
    if (slots.rank() != 3)
      throw LayerError("bottom/1",
                       cat("Interaction reads an embedding [samples, slots, dim] second, and this one has shape ",
                           to_string(slots)));
    if (dense[0] != slots[0] || dense[1] != slots[2])
      throw LayerError("bottom/1",
                       cat("Interaction takes vectors of one length for the same samples: the first tensor has shape ",
                           to_string(dense), ", this one ", to_string(slots), "; make the last InnerProduct ", slots[2],
                           " wide or the embedding's vectors ", dense[1], " long"));
    const int64_t vectors = slots[1] + 1;
    return {.outputs = {TensorSpec(inputs[0].dtype, {dense[0], dense[1] + vectors * (vectors - 1) / 2 + 1})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::interaction(ctx, io.in[0], io.in[1], io.out[0]);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::interaction_backward(ctx, io.in[0], io.in[1], io.d_out[0], io.d_in[0], io.d_in[1]);
  }
};

}  // namespace

LayerType interaction() {
  return LayerType::of<Interaction>("Interaction",
                                    "y = [v_0 | <v_r, v_c> for all r < c, c after c | 0], v_0 a row of the first "
                                    "bottom, v_1, ... the slots of the second",
                                    {2, 2}, {1, 1}, Schema<NoParams>("Interaction"));
}

}  // namespace hctr
