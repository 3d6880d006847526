// Checks the model files that a config names: that they belong together and are unchanged.
#pragma once

#include <cstdint>

#include "config/sections/config.h"
#include "core/base/log.h"

namespace hctr {

/// Checks the initial model files that the solver names, before loading any of them. Files with a manifest must be one
/// set, complete, unchanged, and assigned to the tables that they hold. For files without one, such as HugeCTR's, only
/// sizes can be checked; the log says so, and states the assumed layout of their optimizer states. Returns Adam's step
/// count t of the optimizer states; 0 without states. Errors: Error(io); Error(data) naming the file.
int64_t check_model_files(const Config&, const Log&);

}  // namespace hctr
