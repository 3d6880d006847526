// DeepFM's two factorization machine terms over the slots of a table and other vectors. Fusion creates the layer in
// place of the equivalent Slice, Reshapes, Concats, FmOrder2 and ReduceSums; configs cannot name it.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// Calls ops::factorization_machine(): in = {slots [batch * slots, dim + 1], vectors [batch, n * dim], weights [batch,
/// m]}, out = {all vectors [batch, (slots + n) * dim], second-order term [batch, 1], first-order term [batch, 1]}.
std::shared_ptr<const Layer> factorization_machine();

}  // namespace hctr
