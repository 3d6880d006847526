// A Slice whose rows are slots of samples, and the Reshapes after it. Fusion creates the layer in place of these
// layers; configs cannot name it.
#pragma once

#include <memory>

#include "net/layers/layer.h"

namespace hctr {

/// Maps x [batch * slots, width] to one output [batch, slots * w_i] for each width w_i. The widths are adjacent column
/// ranges of x and cover all of it.
std::shared_ptr<const Layer> slot_columns(int64_t slots, std::vector<int64_t> widths);

}  // namespace hctr
