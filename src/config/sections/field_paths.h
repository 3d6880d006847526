// The fields of a config as paths for --set.
#pragma once

#include <string>

#include "config/json.h"

namespace hctr {

/// The declared field that is closest to an unknown path: "layers.top1.fc_param.num_output" for
/// "layers.top1.num_output". The field need not occur in the config. Empty if no field is close. `config`: determines
/// the layers, the data format and the optimizer.
std::string nearest_field(const Json& config, const std::string& path);

}  // namespace hctr
