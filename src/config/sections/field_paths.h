// The fields that a config may have, by the paths that --set takes.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// The field of the declarations that a path which names none most likely means, "layers.top1.fc_param.num_output" for
/// "layers.top1.num_output", also where the config leaves it out; empty where no field is near. `config`: says which
/// layers, format and optimizer there are.
std::string nearest_field(const Json& config, const std::string& path);

}  // namespace hctr
