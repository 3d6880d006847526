#include "net/layers/onnx_graph.h"

namespace hctr {

std::string OnnxGraph::add(const std::string& op, std::vector<std::string> in, Attributes attributes) {
  std::string out = name(op);
  add_as(out, op, std::move(in), std::move(attributes));
  return out;
}

void OnnxGraph::add_as(const std::string& out, const std::string& op, std::vector<std::string> in,
                       Attributes attributes) {
  nodes_.push_back({op, std::move(in), {out}, std::move(attributes)});
}

std::string OnnxGraph::numbers(std::vector<int64_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return add_constant({count}, std::move(values));
}

std::string OnnxGraph::add_constant(std::vector<int64_t> dims,
                                    std::variant<std::vector<float>, std::vector<int64_t>> values) {
  constants_.push_back({name("constant"), std::move(dims), std::move(values)});
  return constants_.back().name;
}

std::string OnnxGraph::rows_of(const Shape& shape) {
  std::vector<int64_t> dims = {-1};
  for (int d = 1; d < shape.rank(); ++d) dims.push_back(shape[d]);
  return numbers(dims);
}

std::string OnnxGraph::slice(const std::string& x, int64_t axis, int64_t begin, int64_t end) {
  std::string out = name("Slice");
  slice_as(out, x, axis, begin, end);
  return out;
}

void OnnxGraph::slice_as(const std::string& out, const std::string& x, int64_t axis, int64_t begin, int64_t end) {
  add_as(out, "Slice", {x, numbers({begin}), numbers({end}), numbers({axis})});
}

}  // namespace hctr
