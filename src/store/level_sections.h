// The sections of store.json for levels in databases, and for the GPU cache.
#pragma once

#include "store/store_config.h"

namespace hctr {

Schema<StoreRocksSection> rocks_schema();
Schema<StoreRedisSection> redis_schema();
Schema<StoreCacheSection> cache_schema();
StoreCacheOptions options_of(const StoreCacheSection&);
StoreRocksOptions options_of(const StoreRocksSection&);
StoreRedisOptions options_of(const StoreRedisSection&);

}  // namespace hctr
