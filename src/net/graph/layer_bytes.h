// How many bytes the calls of a layer read and write at least: the sizes of their tensors, each once.
#pragma once

#include "net/layers/layer.h"

namespace hctr {

double bytes_forward(const LayerIo&);
/// As if backward() read all that forward() read and wrote, unless outputs share the memory of inputs: then nothing but
/// what is copied.
double bytes_backward(const LayerSpec&, const LayerIo&);
double bytes_backward_weights(const LayerIo&);

}  // namespace hctr
