// Streams of updates of a store on the command line.
#pragma once

#include "core/base/log.h"
#include "hctr/store.h"
#include "store/store_config.h"

namespace hctr {

/// Applies what comes to the topics, and prints a line of each model that has changed, until a signal says to stop.
/// Returns the exit code.
int follow_streams(Store&, const StoreConfig&, const Log&);

}  // namespace hctr
