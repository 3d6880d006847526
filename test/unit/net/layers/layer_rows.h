// Runs a layer in the operator harness. A Rig holds the tensors of the layer's spec, so that each test case runs the
// layer on every device, dtype and layout.
#pragma once

#include <string>
#include <vector>

#include "support/op_test.h"
#include "unit/net/layers/layer_spec.h"

namespace hctr::test {

inline std::string output_name(size_t i) { return i == 0 ? "y" : cat("y", i); }

/// Inputs are the Rig's tensors with these names. Weights and states have their names in the spec. Outputs are "y",
/// "y1", ...
inline LayerIo io_of(Rig& t, const Layer& layer, const std::vector<std::string>& inputs, bool backward) {
  LayerIo io;
  Specs specs;
  for (const std::string& name : inputs) {
    io.in.push_back(t[name]);
    specs.emplace_back(t[name].dtype(), t[name].shape());
  }
  const LayerSpec layer_spec = layer.spec(specs);
  for (size_t i = 0; i < layer_spec.outputs.size(); ++i)
    io.out.push_back(t.out(output_name(i), layer_spec.outputs[i].shape));
  for (const WeightSpec& weight : layer_spec.weights) io.weights.push_back(t[weight.name]);
  for (const StateSpec& state : layer_spec.state) io.state.push_back(t.inout(state.name));
  for (size_t i = 0; i < layer_spec.scratch.size(); ++i) {
    const TensorSpec& spec = layer_spec.scratch[i];
    const DType dtype = spec.dtype == DType::f32 && t.dtype() == DType::f64 ? DType::f64 : spec.dtype;
    io.scratch.push_back(t.scratch(cat("scratch", i), TensorSpec(dtype, {spec.shape.elements()})).reshaped(spec.shape));
  }
  if (!backward) return io;
  for (const std::string& name : inputs) io.d_in.push_back(t.d(name));
  for (size_t i = 0; i < layer_spec.outputs.size(); ++i) io.d_out.push_back(t.d(output_name(i)));
  for (const WeightSpec& weight : layer_spec.weights)
    io.d_weights.push_back(t.out(cat("d_", weight.name), weight.shape, Type::wide));
  return io;
}

/// Registers forward and backward of the layer with this section as the tested operator.
inline void layer_under_test(OpTest& test, const std::string& section, const std::vector<std::string>& inputs) {
  Problems problems;
  const std::shared_ptr<Layer> layer = made(section, problems);
  problems.throw_if_any("test.json");
  test.rounding(Rounding::sum);
  test.forward([layer, inputs](Rig& t) { layer->forward(t.ctx, io_of(t, *layer, inputs, false), Phase::train); });
  test.backward([layer, inputs](Rig& t) {
    const LayerIo io = io_of(t, *layer, inputs, true);
    layer->backward(t.ctx, io);
    layer->backward_weights(t.ctx, io);
  });
}

}  // namespace hctr::test
