#include "store/level_plugins.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "core/base/expect.h"
#include "core/base/plugin_file.h"

namespace hctr {
namespace {

struct LevelPluginFile {
  const char *what, *file, *entry, *packages, *line;
  int64_t version;
};

template <class Plugin>
const Plugin& load_level_plugin(const LevelPluginFile& of) {
  std::error_code none;
  const std::filesystem::path beside = plugin_file(of.file);
  const bool there = std::filesystem::exists(beside, none);
  void* const library = ::dlopen(there ? beside.c_str() : of.file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const std::string why = ::dlerror();
    throw Error(Kind::io,
                there ? cat("a level in ", of.what, " needs '", beside.string(), "', which cannot be loaded: ", why,
                            "; install ", of.packages, ", or configure and build again with what is there now")
                      : cat("a level in ", of.what, " needs ", of.file, " next to the program, and there is none (",
                            why, "). Was the program copied without it? Else ", of.what,
                            " was not found when this was built: install ", of.packages,
                            ", then configure and build again; CMake's line \"", of.line, ":\" says what it found"));
  }
  const auto entry = reinterpret_cast<const Plugin* (*)()>(::dlsym(library, of.entry));
  if (!entry || entry()->version != of.version)
    throw Error(Kind::io, cat("'", beside.string(), "' belongs to another version of this program; build it again"));
  return *entry();
}

}  // namespace

const RocksPlugin& rocks_plugin() {
  static const RocksPlugin& plugin = load_level_plugin<RocksPlugin>(
      {"RocksDB", kRocksPluginFile, kRocksPluginEntry, "librocksdb-dev", "RocksDB", kRocksPlugin});
  return plugin;
}

const RedisPlugin& redis_plugin() {
  static const RedisPlugin& plugin = load_level_plugin<RedisPlugin>(
      {"Redis", kRedisPluginFile, kRedisPluginEntry, "libhiredis-dev and libssl-dev", "Redis", kRedisPlugin});
  return plugin;
}

}  // namespace hctr
