// The list of all layer types.
#pragma once

#include <string>
#include <vector>

#include "net/layers/layer_type.h"

namespace hctr {

/// All dense layers and losses, in alphabetical order.
const std::vector<LayerType>& layer_catalog();

/// The type with this name, or null.
const LayerType* find_layer_type(const std::string& name);

}  // namespace hctr
