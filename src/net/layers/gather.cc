// Gather: selects rows of its input.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/strided_items.h"

namespace hctr {
namespace {

using ops::StridedItems;

struct GatherParams {
  std::vector<int64_t> indices;
};

class Gather : public Layer {
 public:
  Gather(const std::string&, GatherParams params) : indices_(std::move(params.indices)) {}

  LayerSpec spec(const Specs& inputs) const override {
    Shape shape = inputs[0].shape;
    for (size_t i = 0; i < indices_.size(); ++i)
      if (indices_[i] >= shape[0])
        throw LayerError(cat("indices/", i), cat("row ", indices_[i], " of a tensor of shape ", to_string(shape),
                                                 ": its rows are 0 to ", shape[0] - 1));
    shape[0] = static_cast<int64_t>(indices_.size());
    return {.outputs = {TensorSpec(inputs[0].dtype, shape)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::gather(ctx, all_rows(io.in[0]), indices_, all_rows(io.out[0]));
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    graph.add_as(io.y(), "Gather", {io.x(), graph.numbers(indices_)}, {{"axis", int64_t{0}}});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::gather_backward(ctx, all_rows(io.d_out[0]), indices_, all_rows(*io.d_in[0]));
  }

 private:
  static StridedItems all_rows(const Tensor& t) { return StridedItems::runs_of_rows(t, t.rows()); }

  std::vector<int64_t> indices_;
};

void check_gather_params(GatherParams& params, const std::string& pointer, Problems& problems) {
  if (params.indices.empty()) problems.error(pointer + "/indices", "names no row; at least one is needed");
}

}  // namespace

LayerType gather() {
  using P = GatherParams;
  return LayerType::of<Gather>("Gather", "row i of y = row indices[i] of x", {1, 1}, {1, 1},
                               Schema<P>("Gather")
                                   .need("indices", &P::indices, "row numbers of x; numbers may repeat", count_from(0))
                                   .together(check_gather_params));
}

}  // namespace hctr
