// Checks that the model files that a config names belong together and are unchanged.
#pragma once

#include <cstdint>

#include "config/sections/config.h"
#include "core/base/log.h"

namespace hctr {

/// Checks the initial model files that the solver names, before any file is loaded. Files with a manifest must be one
/// complete, unchanged set, and each must be assigned to its own table. For files without a manifest, such as
/// HugeCTR's, only sizes are checked; a log message says so and states the assumed layout of optimizer states. Returns
/// Adam's step count t of the optimizer states; 0 without states. Errors: Error(io); Error(data) with the file name.
int64_t check_model_files(const Config&, const Log&);

}  // namespace hctr
