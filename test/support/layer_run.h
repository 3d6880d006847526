// One layer, made from its section, run forward and backward on random numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "support/guarded_tensor.h"

namespace hctr::test {

/// The layer that a section describes ("bottom" and "top" may be left out). Errors in it fail the test.
std::unique_ptr<Layer> layer_of(const std::string& section);

/// What is wrong with a section: the errors of its fields, "pointer: message", else the PlanError for inputs of these
/// shapes, "field: message". Fails the test when nothing is.
std::string complaint_of(const std::string& section, const std::vector<Shape>& inputs);

/// Shapes of outputs, and names and shapes of weights: "[4,3] | weights [2,3] bias [3]".
std::string plan_of(const std::string& section, const std::vector<Shape>& inputs);

struct LayerSetup {
  std::string section;
  std::vector<Shape> inputs;
  double low = -1, high = 1;
};

/// Values and gradients after forward and backward. Inputs, weights and the gradients of outputs are random, the same
/// for equal setups whatever the device and dtype.
struct LayerRun {
  struct Options {
    Device device{};
    DType dtype = DType::f64;
    DType rounded_to = DType::f32;
    Placement placement{"dense"};
    bool want_d_in = true;
    int perturbed = -1;  ///< adds `delta` to an element of an input, or of a weight (numbers go on after the inputs)
    size_t element = 0;
    double delta = 0;
  };
  LayerRun(const LayerSetup&, const Options&);

  std::vector<std::vector<double>> in, weights, out, d_in, d_weights, d_out;
  std::vector<std::string> complaints;
};

/// Checks gradients against central differences in f64; every device, dtype and memory layout against f64; that nothing
/// but its outputs is written, and all of them; and that gradients of inputs may be absent.
void check_layer(const LayerSetup&);

}  // namespace hctr::test
