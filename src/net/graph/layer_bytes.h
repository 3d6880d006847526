// The minimum number of bytes that a layer's calls read and write: each tensor is counted once.
#pragma once

#include "net/layers/layer.h"

namespace hctr {

double bytes_forward(const LayerIo&);
/// The bytes that backward() reads and writes. Assumes that backward() reads all tensors that forward() read and wrote.
/// For outputs that share the memory of inputs, only copied bytes are counted.
double bytes_backward(const LayerSpec&, const LayerIo&);
double bytes_backward_weights(const LayerIo&);

}  // namespace hctr
