// Finds and loads plug-ins: libraries that are loaded on demand.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/base/expect.h"

namespace hctr {

/// The path of the plug-in `name`. Searches the folder of the executable or of libhuge_ctr.so, then the bin folder of
/// the same installation. The returned file may not exist.
std::filesystem::path plugin_file(const char* name);

/// Describes a plug-in. Its single entry function returns a table of function pointers whose first field is the
/// version.
struct PluginLibrary {
  const char* user;      ///< the feature that needs the plug-in, as the subject of a message: "Parquet data"
  const char* file;      ///< "libhuge_ctr_parquet.so"
  const char* entry;     ///< the name of the entry function
  int64_t version;       ///< expected version of the table
  const char* library;   ///< the library that the plug-in links: "Arrow C++"
  const char* packages;  ///< packages to install for `library`
  const char* label;     ///< label in CMake's output: "Parquet"
};

/// Loads the plug-in and returns its entry function, or null if there is none. Errors: Error(io) naming the packages to
/// install.
void* plugin_entry(const PluginLibrary&);
/// Throws Error(io), which says that the plug-in has another version.
[[noreturn]] void fail_on_version(const PluginLibrary&);

/// Loads the plug-in and returns its table of function pointers. Errors: Error(io). `of` is passed by value, because
/// GCC 13 warns that the result might refer to a temporary argument.
template <class Plugin>
const Plugin& load_plugin(PluginLibrary of) {
  const auto entry = reinterpret_cast<const Plugin* (*)()>(plugin_entry(of));
  if (!entry || entry()->version != of.version) fail_on_version(of);
  return *entry();
}

}  // namespace hctr
