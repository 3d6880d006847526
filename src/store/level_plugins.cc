#include "store/level_plugins.h"

#include "core/base/plugin_file.h"

namespace hctr {

const RocksPlugin& rocks_plugin() {
  static const RocksPlugin& plugin =
      load_plugin<RocksPlugin>({"a level in RocksDB", kRocksPluginFile, kRocksPluginEntry, kRocksPlugin, "RocksDB",
                                "librocksdb-dev", "RocksDB"});
  return plugin;
}

const RedisPlugin& redis_plugin() {
  static const RedisPlugin& plugin =
      load_plugin<RedisPlugin>({"a level in Redis", kRedisPluginFile, kRedisPluginEntry, kRedisPlugin,
                                "hiredis or OpenSSL", "libhiredis-dev and libssl-dev", "Redis"});
  return plugin;
}

}  // namespace hctr
