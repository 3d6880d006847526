// Reshape: the same elements with another row length, or selected slots concatenated.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/copy.h"
#include "ops/common/strided_items.h"

namespace hctr {
namespace {

struct ReshapeParams {
  std::optional<int64_t> leading_dim;
  int64_t time_step = 0;
  std::optional<std::vector<int64_t>> selected;
};

class Reshape : public Layer {
 public:
  Reshape(const std::string&, ReshapeParams params) : params_(std::move(params)) {}

  LayerSpec spec(const Specs& inputs) const override {
    return params_.selected ? plan_selected(inputs[0]) : plan_rows(inputs[0]);
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    if (!params_.selected) return ops::copy(ctx, io.in[0], io.out[0]);
    ops::gather(ctx, ops::StridedItems::slots_of(io.in[0], io.in[0].dim(1)), *params_.selected, chosen(io.out[0]));
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    std::string x = io.x();
    if (params_.selected) x = graph.add("Gather", {x, graph.numbers(*params_.selected)}, {{"axis", int64_t{1}}});
    graph.add_as(io.y(), "Reshape", {x, graph.rows_of(io.out[0].shape)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (!io.d_in[0]) return;
    if (!params_.selected) return ops::copy(ctx, io.d_out[0], *io.d_in[0]);
    ops::gather_backward(ctx, chosen(io.d_out[0]), *params_.selected,
                         ops::StridedItems::slots_of(*io.d_in[0], io.d_in[0]->dim(1)));
  }

 private:
  LayerSpec plan_rows(const TensorSpec& x) const {
    const int64_t elements = x.shape.elements(), last = x.shape[x.shape.rank() - 1];
    const int64_t steps = params_.time_step == 0 ? 1 : params_.time_step;
    const int64_t width = params_.leading_dim.value_or(x.row_elements() / steps);
    if (width == 0 || width % last != 0 || elements % (steps * width) != 0)
      throw LayerError("leading_dim", cat("a tensor of shape ", to_string(x.shape), " cannot become ",
                                          steps > 1 ? cat(steps, " time steps of ") : "", "rows of ", width,
                                          ": leading_dim must be a multiple of its last dimension (", last, ") and ",
                                          steps > 1 ? "time_step times leading_dim must " : "", "divide its ", elements,
                                          " elements; a leading_dim that fits is ", steps > 1 ? last : x.row_elements(),
                                          steps > 1 ? "" : ": all of a row"));
    const Shape shape =
        params_.time_step == 0 ? Shape{elements / width, width} : Shape{elements / (steps * width), steps, width};
    return {.outputs = {TensorSpec(x.dtype, shape)}, .memory = LayerSpec::Memory::reshape_of_input};
  }

  LayerSpec plan_selected(const TensorSpec& x) const {
    if (x.shape.rank() != 3)
      throw LayerError("selected", cat("\"selected\" needs a tensor [samples, slots, dim], such as an embedding's "
                                       "output, found shape ",
                                       to_string(x.shape), "; use Slice to select columns of a matrix"));
    for (size_t i = 0; i < params_.selected->size(); ++i)
      if (const int64_t slot = (*params_.selected)[i]; slot >= x.shape[1])
        throw LayerError(cat("selected/", i), cat("slot ", slot, " of a tensor of shape ", to_string(x.shape),
                                                  ": its slots are 0 to ", x.shape[1] - 1));
    return {.outputs = {TensorSpec(x.dtype, {x.rows(), static_cast<int64_t>(params_.selected->size()) * x.shape[2]})}};
  }

  ops::StridedItems chosen(const Tensor& y) const {
    return ops::StridedItems::slots_of(y, static_cast<int64_t>(params_.selected->size()));
  }

  ReshapeParams params_;
};

void check_reshape_params(ReshapeParams& params, const std::string& pointer, Problems& problems) {
  if (!params.selected) return;
  if (params.selected->empty()) problems.error(pointer + "/selected", "selects no slot; name at least one");
  if (params.time_step != 0)
    problems.error(pointer + "/time_step", "cannot be combined with \"selected\"; remove one of the two");
  if (params.leading_dim) problems.note(pointer + "/leading_dim", "has no effect: \"selected\" decides the width");
}

}  // namespace

LayerType reshape() {
  using P = ReshapeParams;
  return LayerType::of<Reshape>(
      "Reshape",
      "y = the elements of x in the same order, in rows of leading_dim elements; or, with selected, the "
      "selected slots of x, concatenated",
      {1, 1}, {1, 1},
      Schema<P>("Reshape")
          .opt("leading_dim", &P::leading_dim, "length of the last dimension of y; default: a whole row of x",
               count_from(1))
          .opt("time_step", &P::time_step, "y is [rows, time_step, leading_dim]; 0: y is a matrix", count_from(0))
          .opt("selected", &P::selected, "indices of the slots of x that form a row of y, in this order", count_from(0))
          .refused("shape",
                   "set the last dimension with \"leading_dim\", and for 3-D output the second to last dimension with "
                   "\"time_step\"")
          .together(check_reshape_params));
}

}  // namespace hctr
