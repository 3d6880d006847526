// Slice and the Reshapes behind it, of rows that are slots of samples. No section of a config names it: it takes the
// place of these layers.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// From x [batch * slots, width] to one output [batch, slots * w_i] for each width w_i, which are adjacent columns of x
/// and together all of them.
std::shared_ptr<const Layer> slot_columns(int64_t slots, std::vector<int64_t> widths);

}  // namespace hctr
