// The sections of store.json for levels in databases.
#pragma once

#include "store/store_config.h"

namespace hctr {

Schema<StoreRocksSection> rocks_schema();
Schema<StoreRedisSection> redis_schema();
StoreRocksOptions options_of(const StoreRocksSection&);
StoreRedisOptions options_of(const StoreRedisSection&);

}  // namespace hctr
