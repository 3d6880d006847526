// Concat: concatenates its inputs along an axis.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_parts.h"
#include "ops/common/copy.h"
#include "ops/common/strided_items.h"

namespace hctr {
namespace {

using ops::StridedItems;

struct ConcatParams {
  int64_t axis = 1;
};

class Concat : public Layer {
 public:
  Concat(const std::string&, ConcatParams params) : axis_(static_cast<int>(params.axis)) {}

  LayerSpec spec(const Specs& inputs) const override {
    Shape shape = inputs[0].shape;
    if (shape.rank() != 3) need_rank(inputs[0], 2, "bottom/0", "Concat");
    if (axis_ >= shape.rank())
      throw LayerError(
          "axis", cat("axis ", axis_, " of a tensor of shape ", to_string(shape), ": axis must be 1 for matrices"));
    for (size_t i = 1; i < inputs.size(); ++i) {
      Shape expected = inputs[i].shape;
      if (expected.rank() == shape.rank()) expected[axis_] = shape[axis_];
      if (expected != shape) throw LayerError(cat("bottom/", i), misfit(inputs[0].shape, inputs[i].shape));
      shape[axis_] += inputs[i].shape[axis_];
    }
    return {.outputs = {TensorSpec(inputs[0].dtype, shape)},
            .memory = axis_ == 1 ? LayerSpec::Memory::columns_of_inputs : LayerSpec::Memory::own};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    int64_t at = 0;
    for (const Tensor& x : io.in) copy_part(ctx, x, io.out[0], at, true);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    graph.add_as(io.y(), "Concat", input_names(io), {{"axis", int64_t{axis_}}});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    int64_t at = 0;
    for (size_t i = 0; i < io.in.size(); ++i) {
      if (io.d_in[i])
        copy_part(ctx, *io.d_in[i], io.d_out[0], at, false);
      else
        at += axis_ == 1 ? io.in[i].row_elements() : io.in[i].dim(2);
    }
  }

 private:
  std::string misfit(const Shape& first, const Shape& other) const {
    if (first.rank() == 2 && other.rank() == 2)
      return cat("Concat takes tensors with the same number of rows: the first has ", first[0], ", this one ",
                 other[0]);
    return cat("Concat along axis ", axis_, " takes tensors that agree in all other dimensions: the first has shape ",
               to_string(first), ", this one ", to_string(other));
  }

  /// Copies `part`, one of the inputs, to its columns of `whole`; if into_whole is false, copies these columns to
  /// `part` instead. The columns begin at `at`. With axis 2, they are columns of every slot. Advances `at` by the width
  /// of `part`.
  void copy_part(Context& ctx, const Tensor& part, const Tensor& whole, int64_t& at, bool into_whole) const {
    const int64_t width = axis_ == 1 ? part.row_elements() : part.dim(2), begin = at;
    at += width;
    if (axis_ == 2) {
      const StridedItems slots = StridedItems::slots_of(part, part.dim(1)),
                         columns = StridedItems::slots_of(whole, whole.dim(1)).columns(begin, at);
      return into_whole ? ops::copy_items(ctx, slots, columns) : ops::copy_items(ctx, columns, slots);
    }
    const Tensor flat = part.reshaped({part.rows(), width}),
                 columns = whole.reshaped({whole.rows(), whole.row_elements()}).columns(begin, at);
    return into_whole ? ops::copy(ctx, flat, columns) : ops::copy(ctx, columns, flat);
  }

  int axis_;
};

}  // namespace

LayerType concat() {
  using P = ConcatParams;
  return LayerType::of<Concat>(
      "Concat", "y = [x_0 | x_1 | ...] along the axis, in the order of the bottoms", {1, kAnyNumber}, {1, 1},
      Schema<P>("Concat").opt("axis", &P::axis,
                              "1: columns of matrices, slots of 3-D tensors; 2: columns of every slot", between(1, 2)));
}

}  // namespace hctr
