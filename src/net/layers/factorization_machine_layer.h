// DeepFM's two factorization machine terms over the slots of a table and other vectors. Fusion creates it in place of
// the equivalent Slice, Reshapes, Concats, FmOrder2 and ReduceSums; no section of a config names it.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// in = {slots [batch * slots, dim + 1], vectors [batch, n * dim], weights [batch, m]}, out = {all vectors [batch,
/// (slots + n) * dim], second-order term [batch, 1], first-order term [batch, 1]}: ops::factorization_machine().
std::shared_ptr<const Layer> factorization_machine();

}  // namespace hctr
