// Interaction: the dot products of all pairs of a sample's vectors, as in DLRM.
#include "ops/dense/interaction.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"

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
          cat("Interaction reads a matrix [samples, dim] first, from the bottom MLP, found shape ", to_string(dense)));
    if (slots.rank() != 3)
      throw LayerError("bottom/1",
                       cat("the second input of Interaction must be an embedding [samples, slots, dim], found shape ",
                           to_string(slots)));
    if (dense[0] != slots[0] || dense[1] != slots[2])
      throw LayerError("bottom/1",
                       cat("Interaction takes vectors of equal length for the same samples: the first tensor has "
                           "shape ",
                           to_string(dense), ", this one ", to_string(slots), "; make the last InnerProduct ", slots[2],
                           " wide or the embedding's vectors ", dense[1], " long"));
    const int64_t vectors = slots[1] + 1;
    return {.outputs = {TensorSpec(inputs[0].dtype, {dense[0], dense[1] + vectors * (vectors - 1) / 2 + 1})},
            .traits = {.searches_gradient_of = 1, .finishes_relu_of = {0}}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::interaction(ctx, io.in[0], io.in[1], io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const int64_t dim = io.in[0].shape[1], vectors = io.in[1].shape[1] + 1;
    const std::string first = graph.add("Reshape", {io.x(), graph.numbers({-1, 1, dim})});
    const std::string v = graph.add("Concat", {first, io.in[1].name}, {{"axis", int64_t{1}}});
    const std::string turned = graph.add("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    const std::string products =
        graph.add("Reshape", {graph.add("MatMul", {v, turned}), graph.numbers({-1, vectors * vectors})});
    std::vector<int64_t> pairs;
    for (int64_t c = 1; c < vectors; ++c)
      for (int64_t r = 0; r < c; ++r) pairs.push_back(c * vectors + r);
    const std::string chosen = graph.add("Gather", {products, graph.numbers(pairs)}, {{"axis", int64_t{1}}});
    const std::string both = graph.add("Concat", {io.x(), chosen}, {{"axis", int64_t{1}}});
    graph.add_as(io.y(), "Pad", {both, graph.numbers({0, 0, 0, 1})});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    ops::interaction_backward(ctx, io.in[0], io.in[1], io.d_out[0], io.d_in[0], io.d_in[1], io.overflow,
                              io.below.empty() ? std::nullopt : io.below[0]);
  }
};

}  // namespace

LayerType interaction() {
  return LayerType::of<Interaction>("Interaction",
                                    "y = [v_0, <v_r, v_c> for all r < c (by c, then r), one column of 0], where v_0 is "
                                    "a row of the first bottom and v_1, v_2, ... are the slots of the second bottom",
                                    {2, 2}, {1, 1}, Schema<NoParams>("Interaction"));
}

}  // namespace hctr
