// The minimum number of bytes that a layer's calls read and write: the size of each of their tensors, once.
#pragma once

#include "net/layers/layer.h"

namespace hctr {

double bytes_forward(const LayerIo&);
/// Assumes that backward() reads everything that forward() read and wrote. If outputs share the memory of inputs, only
/// the copied bytes count.
double bytes_backward(const LayerSpec&, const LayerIo&);
double bytes_backward_weights(const LayerIo&);

}  // namespace hctr
