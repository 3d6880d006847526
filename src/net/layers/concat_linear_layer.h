// A fully connected stage with one output that reads the inputs of a Concat without concatenating them. Fusion creates
// it in place of the two layers; no section of a config names it.
#pragma once

#include <memory>

#include "net/layers/fully_connected.h"

namespace hctr {

/// y = [x_0 | x_1 | ...] W + b, with the weights of the stage over all columns. Null for a stage with an activation or
/// several outputs, and for more inputs than the operator supports.
std::shared_ptr<const Layer> concat_linear(const FullyConnected& stage, size_t inputs);

}  // namespace hctr
