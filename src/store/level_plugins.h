// Plug-ins with the levels of a store that need other libraries.
#pragma once

#include "store/redis_plugin.h"
#include "store/rocks_plugin.h"

namespace hctr {

/// Loaded by the first call. Errors: Error(io) naming the file, and what to install.
const RocksPlugin& rocks_plugin();
const RedisPlugin& redis_plugin();

}  // namespace hctr
