// The config for using a saved model.
#pragma once

#include "config/sections/config.h"
#include "core/base/log.h"
#include "hctr/use_model.h"

namespace hctr {

/// Returns the config that the options name, with encoding fields from the model as ModelOptions::encoding says. If the
/// options name no config, returns the config saved with the model. Errors: those of load_config() and saved_config().
Config config_of_model(const ModelOptions&, const Log&);

}  // namespace hctr
