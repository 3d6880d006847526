// The fields that a config may have, as paths for --set.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// The declared field that an unknown path most likely means, "layers.top1.fc_param.num_output" for
/// "layers.top1.num_output", even if the config omits it; empty if no field is near. `config`: gives the layers, format
/// and optimizer.
std::string nearest_field(const Json& config, const std::string& path);

}  // namespace hctr
