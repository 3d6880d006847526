// Plug-ins for store levels that need additional libraries.
#pragma once

#include "store/redis_plugin.h"
#include "store/rocks_plugin.h"

namespace hctr {

/// Loads the plug-in on the first call. Errors: Error(io) with the file's name and what to install.
const RocksPlugin& rocks_plugin();
const RedisPlugin& redis_plugin();

}  // namespace hctr
