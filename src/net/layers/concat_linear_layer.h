// A fully connected stage with one output that reads what a Concat would put side by side. No section of a config names
// it: it takes the place of two layers.
#pragma once

#include <memory>

#include "net/layers/fully_connected.h"

namespace hctr {

/// y = [x_0 | x_1 | ...] W + b, with the weights of the stage over all columns. Null for a stage with an activation or
/// several outputs, and for more inputs than the operator takes.
std::shared_ptr<const Layer> concat_linear(const FullyConnected& stage, size_t inputs);

}  // namespace hctr
