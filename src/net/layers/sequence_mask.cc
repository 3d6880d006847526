// SequenceMask: computes a mask of the valid positions of padded sequences from the sequence lengths.
#include "ops/dense/sequence_mask.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/fill.h"

namespace hctr {
namespace {

struct SequenceMaskParams {
  int64_t max_sequence_len_from = 0;
  std::optional<int64_t> max_sequence_len_to;
};

class SequenceMask : public Layer {
 public:
  SequenceMask(const std::string&, SequenceMaskParams params)
      : most_from_(params.max_sequence_len_from),
        most_to_(params.max_sequence_len_to.value_or(params.max_sequence_len_from)) {}

  LayerSpec spec(const Specs& inputs) const override {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].shape != Shape{inputs[0].rows(), 1})
        throw LayerError(cat("bottom/", i), cat("each bottom of SequenceMask needs one column, and the same number of "
                                                "rows as the first: the first has shape ",
                                                to_string(inputs[0].shape), ", this one ", to_string(inputs[i].shape)));
    return {.outputs = {TensorSpec(inputs[0].dtype, {inputs[0].rows(), 1, most_from_, most_to_})}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::sequence_mask(ctx, io.in.front(), io.in.back(), io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const auto inside = [&](const OnnxIo::Value& lengths, int64_t most, std::vector<int64_t> dims) {
      std::vector<float> positions;
      for (int64_t i = 0; i < most; ++i) positions.push_back(static_cast<float>(i));
      const std::string end = graph.add("Reshape", {lengths.name, graph.numbers({-1, 1, 1, 1})});
      return graph.add("Less", {graph.add_constant(std::move(dims), std::move(positions)), end});
    };
    const std::string both = graph.add("And", {inside(io.in.front(), most_from_, {1, 1, most_from_, 1}),
                                               inside(io.in.back(), most_to_, {1, 1, 1, most_to_})});
    graph.add_as(io.y(), "Where", {both, graph.number(1.0f), graph.number(0.0f)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    for (const auto& d_in : io.d_in)
      if (d_in) ops::fill(ctx, 0, *d_in);  // the gradient of a step function is 0
  }

 private:
  int64_t most_from_, most_to_;
};

}  // namespace

LayerType sequence_mask() {
  using P = SequenceMaskParams;
  return LayerType::of<SequenceMask>(
      "SequenceMask",
      "y[b, 0, i, j] = 1 if i < from[b] and j < to[b], else 0; bottoms: the lengths from and to, or one bottom for "
      "both",
      {1, 2}, {1, 1},
      Schema<P>("SequenceMask")
          .need("max_sequence_len_from", &P::max_sequence_len_from, "number of positions i, the third dimension of y",
                count_from(1))
          .opt("max_sequence_len_to", &P::max_sequence_len_to,
               "number of positions j, the last dimension of y; default: max_sequence_len_from", count_from(1)));
}

}  // namespace hctr
