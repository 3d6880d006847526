// The config that a saved model is used with.
#pragma once

#include "config/sections/config.h"
#include "core/base/log.h"
#include "hctr/use_model.h"

namespace hctr {

/// The config that the options name, with the encoding of the model where they say so or it leaves that out; else the
/// one that is saved with the model. Errors: those of load_config() and saved_config().
Config config_of_model(const ModelOptions&, const Log&);

}  // namespace hctr
