// The model files that a config names: whether they belong together, and are as they were saved.
#pragma once

#include <cstdint>

#include "config/sections/config.h"
#include "core/base/log.h"

namespace hctr {

/// Checks the files that the solver names to start from, before one of them is loaded. Files with a manifest must be of
/// one set, whole, unchanged, and named for the tables that they hold. Of the others, as HugeCTR's are, the log says
/// that nothing but sizes can be checked, and what their optimizer states are taken for. Returns t of Adam that belongs
/// to the optimizer states; 0 without states. Errors: Error(io); Error(data) naming the file.
int64_t check_model_files(const Config&, const Log&);

}  // namespace hctr
