// Slice: ranges of columns, or of the slots of 3-D tensors. Ranges may overlap.
#include <algorithm>

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "net/layers/sum_of.h"
#include "ops/common/fill.h"

namespace hctr {
namespace {

struct SliceParams {
  std::vector<std::vector<int64_t>> ranges;
};

class Slice : public Layer {
 public:
  Slice(const std::string&, SliceParams params) : ranges_(std::move(params.ranges)) {}

  LayerSpec spec(const Specs& inputs) const override {
    const Shape& shape = inputs[0].shape;
    if (shape.rank() != 3) need_rank(inputs[0], 2, "bottom", "Slice");
    const char* what = shape.rank() == 3 ? "slots" : "columns";
    LayerSpec spec;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      const auto [begin, end] = range(i);
      if (end > shape[1])
        throw LayerError(cat("ranges/", i),
                         cat(what, " [", begin, ",", end, ") of a tensor of shape ", to_string(shape), ": it has ",
                             shape[1], " ", what, ", so a range ends at ", shape[1], " at most"));
      Shape part = shape;
      part[1] = end - begin;
      spec.outputs.emplace_back(inputs[0].dtype, part);
      spec.first_columns.push_back(begin * width_of(shape));
    }
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    for (size_t i = 0; i < ranges_.size(); ++i)
      ops::copy(ctx, part(io.in[0], range(i).begin, range(i).end), flat(io.out[i]));
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    for (size_t i = 0; i < ranges_.size(); ++i) graph.slice_as(io.out[i].name, io.x(), 1, range(i).begin, range(i).end);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (!io.d_in[0]) return;
    const Tensor& d_x = *io.d_in[0];
    std::vector<int64_t> cuts = {0, d_x.dim(1)};  // between two adjacent cuts, all columns belong to the same ranges
    for (size_t i = 0; i < ranges_.size(); ++i) cuts.insert(cuts.end(), {range(i).begin, range(i).end});
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t n = 0; n + 1 < cuts.size(); ++n) {
      std::vector<Tensor> parts;
      for (size_t i = 0; i < ranges_.size(); ++i)
        if (const auto [begin, end] = range(i); begin <= cuts[n] && cuts[n + 1] <= end)
          parts.push_back(part(io.d_out[i], cuts[n] - begin, cuts[n + 1] - begin));
      const Tensor d_part = part(d_x, cuts[n], cuts[n + 1]);
      if (parts.empty())
        ops::fill(ctx, 0, d_part);
      else
        sum_of(ctx, parts, d_part);
    }
  }

 private:
  struct Columns {
    int64_t begin, end;
  };
  Columns range(size_t i) const { return {ranges_[i][0], ranges_[i][1]}; }

  /// The number of columns per slot for 3-D tensors; 1 for matrices.
  static int64_t width_of(const Shape& shape) { return shape.rank() == 3 ? shape[2] : 1; }
  static Tensor flat(const Tensor& t) { return t.reshaped({t.rows(), t.row_elements()}); }
  /// A view of the columns [begin, end) of a matrix, or of the slots [begin, end) of a 3-D tensor.
  static Tensor part(const Tensor& t, int64_t begin, int64_t end) {
    return flat(t).columns(begin * width_of(t.shape()), end * width_of(t.shape()));
  }

  std::vector<std::vector<int64_t>> ranges_;
};

void check_slice_params(SliceParams& params, const std::string& pointer, Problems& problems) {
  if (params.ranges.empty()) problems.error(pointer + "/ranges", "Slice needs at least one range [begin, end)");
  for (size_t i = 0; i < params.ranges.size(); ++i) {
    const auto& range = params.ranges[i];
    const std::string here = cat(pointer, "/ranges/", i);
    if (range.size() != 2)
      problems.error(here, cat("a range is [begin, end), two numbers; found ", range.size()));
    else if (range[0] < 0 || range[1] <= range[0])
      problems.error(here, cat("[", range[0], ",", range[1],
                               ") is not a range: expected begin of at least 0, and end greater than begin"));
  }
}

}  // namespace

LayerType slice() {
  using P = SliceParams;
  return LayerType::of<Slice>(
      "Slice", "y_i = the columns [begin_i, end_i) of x, or its slots if x is a 3-D tensor; ranges may overlap", {1, 1},
      {1, kAnyNumber},
      Schema<P>("Slice")
          .need("ranges", &P::ranges,
                "for each top the range [begin, end): the first column (or slot) and the one "
                "after the last")
          .together(check_slice_params));
}

}  // namespace hctr
