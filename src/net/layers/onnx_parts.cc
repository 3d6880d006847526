#include "net/layers/onnx_parts.h"

#include "ops/dense/softmax.h"
#include "ops/dense/softmax_rules.h"

namespace hctr {

void add_activation(OnnxGraph& graph, const ops::Activation& f, const std::string& x, const std::string& y) {
  using ActivationKind = ops::Activation::Kind;
  switch (f.kind) {
    case ActivationKind::relu:
      return graph.add_as(y, "Relu", {x});
    case ActivationKind::elu:
      return graph.add_as(y, "Elu", {x}, {{"alpha", f.alpha}});
    case ActivationKind::leaky_relu:
      return graph.add_as(y, "LeakyRelu", {x}, {{"alpha", f.alpha}});
    case ActivationKind::sigmoid:
      return graph.add_as(y, "Sigmoid", {x});
    case ActivationKind::tanh:
      return graph.add_as(y, "Tanh", {x});
    case ActivationKind::gelu: {  // x (1 + erf(x / sqrt(2))) / 2
      const std::string erf = graph.add("Erf", {graph.add("Mul", {x, graph.number(0.70710678118654752f)})});
      const std::string half = graph.add("Mul", {x, graph.number(0.5f)});
      return graph.add_as(y, "Mul", {half, graph.add("Add", {erf, graph.number(1.0f)})});
    }
    case ActivationKind::silu:
      return graph.add_as(y, "Mul", {x, graph.add("Sigmoid", {x})});
  }
}

void add_softmax(OnnxGraph& graph, const OnnxIo::Value& x, const std::optional<OnnxIo::Value>& mask,
                 const std::string& y) {
  std::string scores = x.name;
  if (mask) {
    const Shape part = ops::with_ones(mask->shape);
    // the mask's dimensions, extended to as many dimensions as the scores have
    std::vector<int64_t> dims = {-1, part[1], part[2], part[3]};
    dims.erase(dims.begin() + 1, dims.begin() + 1 + (Shape::kMostDims - x.shape.rank()));
    const std::string flags = graph.add("Reshape", {mask->name, graph.numbers(dims)});
    const std::string masked = graph.add("Less", {flags, graph.number(0.5f)});
    scores = graph.add("Where", {masked, graph.number(ops::kMaskedScore), scores});
  }
  graph.add_as(y, "Softmax", {scores}, {{"axis", int64_t{-1}}});
}

std::vector<std::string> input_names(const OnnxIo& io) {
  std::vector<std::string> names;
  for (const OnnxIo::Value& in : io.in) names.push_back(in.name);
  return names;
}

}  // namespace hctr
