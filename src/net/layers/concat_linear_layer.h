// A fully connected stage with one output that reads the inputs of a Concat without concatenating them. Fusion creates
// the layer in place of the Concat and the stage; configs cannot name it.
#pragma once

#include <memory>

#include "net/layers/fully_connected.h"

namespace hctr {

/// y = [x_0 | x_1 | ...] W + b, with the weights of the stage over all columns. Null if the stage has an activation or
/// several outputs, or if the operator does not support this many inputs.
std::shared_ptr<const Layer> concat_linear(const FullyConnected& stage, size_t inputs);

}  // namespace hctr
