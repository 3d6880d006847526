// Builds one layer from its config section and runs it forward and backward on random numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/layers/layer.h"
#include "support/guarded_tensor.h"

namespace hctr::test {

/// Creates the layer of a config section. The section may omit "bottom" and "top". Errors in the section fail the test.
std::unique_ptr<Layer> layer_of(const std::string& section);

/// Returns the problems of a config section: errors of fields as "pointer: message". Without such errors, returns the
/// LayerError for inputs of these shapes as "field: message". Fails the test if there is no problem.
std::string complaint_of(const std::string& section, const std::vector<Shape>& inputs);

/// Shapes of the outputs, and names and shapes of the weights: "[4,3] | weights [2,3] bias [3]".
std::string spec_text(const std::string& section, const std::vector<Shape>& inputs);

struct LayerSetup {
  std::string section;
  std::vector<Shape> inputs;
  double low = -1, high = 1;
};

/// Values and gradients after forward and backward. Inputs, weights and output gradients are random. Equal setups get
/// equal random values on every device and in every dtype.
struct LayerRun {
  struct Options {
    Device device{};
    DType dtype = DType::f64;
    DType rounded_to = DType::f32;
    RowLayout layout{"dense"};
    bool want_d_in = true;
    int perturbed = -1;  ///< adds `delta` to an element of this input or weight (weights are numbered after the inputs)
    size_t element = 0;
    double delta = 0;
  };
  LayerRun(const LayerSetup&, const Options&);

  std::vector<std::vector<double>> in, weights, out, d_in, d_weights, d_out;
  std::vector<std::string> complaints;
};

/// Checks gradients against central differences in f64. Checks every device, dtype and memory layout against f64.
/// Checks that the layer writes all outputs and nothing else, and that input gradients may be absent.
void check_layer(const LayerSetup&);

}  // namespace hctr::test
