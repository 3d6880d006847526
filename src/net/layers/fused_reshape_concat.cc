// FusedReshapeConcat and FusedReshapeConcatGeneral: each row of an output is one slot of one sample, and contains the
// vectors of that slot from several embeddings side by side. FusedReshapeConcat has two outputs: the last slot of each
// sample (the candidate item), and all earlier slots (the history).
#include "net/layers/layer_type.h"
#include "net/layers/onnx_parts.h"
#include "ops/common/strided_items.h"

namespace hctr {
namespace {

using ops::StridedItems;

template <bool kSplit>
class FusedReshapeConcat : public Layer {
 public:
  static constexpr const char* kType = kSplit ? "FusedReshapeConcat" : "FusedReshapeConcatGeneral";

  FusedReshapeConcat(const std::string&, NoParams) {}

  LayerSpec spec(const Specs& inputs) const override {
    int64_t width = 0;
    const Shape& first = inputs[0].shape;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& shape = inputs[i].shape;
      const std::string field = cat("bottom/", i);
      if (shape.rank() != 3)
        throw LayerError(field,
                         cat(kType, " takes tensors [samples, slots, dim], such as outputs of embeddings, found shape ",
                             to_string(shape)));
      if (shape[0] != first[0] || shape[1] != first[1])
        throw LayerError(field,
                         cat(kType, " takes tensors with the same number of samples and of slots: the first has shape ",
                             to_string(first), ", this one ", to_string(shape)));
      width += shape[2];
    }
    if (kSplit && first[1] < 2)
      throw LayerError("bottom/0",
                       cat(kType, " needs at least two slots, a history and an item, but this tensor has shape ",
                           to_string(first), "; use FusedReshapeConcatGeneral for one slot"));
    const int64_t history = kSplit ? first[1] - 1 : first[1];
    LayerSpec spec{.outputs = {TensorSpec(inputs[0].dtype, {first[0] * history, width})}};
    if (kSplit) spec.outputs.emplace_back(inputs[0].dtype, Shape{first[0], width});
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    each_part(io.in, io.out, [&](size_t, StridedItems x, StridedItems y) { ops::copy_items(ctx, x, y); });
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const int64_t slots = io.in[0].shape[1];
    const std::string all = graph.add("Concat", input_names(io), {{"axis", int64_t{2}}});
    const auto rows = [&](const std::string& some, const OnnxIo::Value& to) {
      graph.add_as(to.name, "Reshape", {some, graph.rows_of(to.shape)});
    };
    if (!kSplit) return rows(all, io.out[0]);
    rows(graph.slice(all, 1, 0, slots - 1), io.out[0]);
    rows(graph.slice(all, 1, slots - 1, slots), io.out[1]);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    std::vector<Tensor> d_in;
    for (size_t i = 0; i < io.in.size(); ++i) d_in.push_back(io.d_in[i].value_or(io.in[i]));
    each_part(d_in, io.d_out, [&](size_t input, StridedItems d_x, StridedItems d_y) {
      if (io.d_in[input]) ops::copy_items(ctx, d_y, d_x);
    });
  }

 private:
  /// Calls body(input index, slots of the input, columns of the output for these slots) for each part of each input.
  template <class Body>
  static void each_part(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs, const Body& body) {
    const int64_t slots = inputs[0].dim(1), history = kSplit ? slots - 1 : slots;
    int64_t at = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const StridedItems x = StridedItems::slots_of(inputs[i], slots);
      body(i, x.item_range(0, history), StridedItems::runs_of_rows(outputs[0], history).columns(at, at + x.width));
      if (kSplit)
        body(i, x.item_range(history, slots), StridedItems::runs_of_rows(outputs[1], 1).columns(at, at + x.width));
      at += x.width;
    }
  }
};

}  // namespace

LayerType fused_reshape_concat() {
  using L = FusedReshapeConcat<true>;
  return LayerType::of<L>(L::kType,
                          "y_0 [samples * (slots - 1), sum of dims]: all slots except the last, as rows; y_1 [samples, "
                          "sum of dims]: the last slot",
                          {1, kAnyNumber}, {2, 2}, Schema<NoParams>(L::kType));
}

LayerType fused_reshape_concat_general() {
  using L = FusedReshapeConcat<false>;
  return LayerType::of<L>(L::kType, "y [samples * slots, sum of dims]: all slots, as rows", {1, kAnyNumber}, {1, 1},
                          Schema<NoParams>(L::kType));
}

}  // namespace hctr
