// Follows a store's update streams on the command line.
#pragma once

#include "core/base/log.h"
#include "hctr/store.h"
#include "store/store_config.h"

namespace hctr {

/// Applies the updates that arrive in the topics, and prints a line for each changed model, until a signal stops it.
/// Returns the exit code.
int follow_streams(Store&, const StoreConfig&, const Log&);

}  // namespace hctr
