// ONNX subgraphs that several layers use.
#pragma once

#include <optional>
#include <string>

#include "net/layers/onnx_graph.h"
#include "ops/common/activation.h"

namespace hctr {

/// Adds y = f(x) to the graph.
void add_activation(OnnxGraph&, const ops::Activation& f, const std::string& x, const std::string& y);

/// Adds y = ops::softmax of x, with or without a mask.
void add_softmax(OnnxGraph&, const OnnxIo::Value& x, const std::optional<OnnxIo::Value>& mask, const std::string& y);

/// The names of all inputs.
std::vector<std::string> input_names(const OnnxIo&);

}  // namespace hctr
