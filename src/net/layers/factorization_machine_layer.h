// DeepFM's two factorization machine terms over the slots of a table and other vectors. No section of a config names
// it: it takes the place of the Slice, Reshapes, Concats, FmOrder2 and ReduceSums that say the same.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// in = {slots [batch * slots, dim + 1], vectors [batch, n * dim], weights [batch, m]}, out = {all vectors [batch,
/// (slots + n) * dim], second-order term [batch, 1], first-order term [batch, 1]}: ops::factorization_machine().
std::shared_ptr<const Layer> factorization_machine();

}  // namespace hctr
