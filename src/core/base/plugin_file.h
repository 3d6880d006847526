// Finds plug-ins: libraries that are loaded on demand.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/base/expect.h"

namespace hctr {

/// The path of the plug-in with this name, next to the program; next to libhuge_ctr.so, or in the folder of programs of
/// the same installation. It may not exist.
std::filesystem::path plugin_file(const char* name);

/// A plug-in with one entry function, which returns a table of calls that begins with its version.
struct PluginLibrary {
  const char* user;      ///< what needs it, as the subject of a message: "Parquet data"
  const char* file;      ///< "libhuge_ctr_parquet.so"
  const char* entry;     ///< the name of the entry function
  int64_t version;       ///< that the table must have
  const char* library;   ///< what it is built with: "Arrow C++"
  const char* packages;  ///< to install for that
  const char* label;     ///< of CMake's line on it: "Parquet"
};

/// Loads it and returns its entry function. Errors: Error(io) naming what to install.
void* plugin_entry(const PluginLibrary&);
/// Error(io) for a plug-in of another version.
[[noreturn]] void fail_on_version(const PluginLibrary&);

/// The table of calls. Errors: Error(io).
template <class Plugin>
const Plugin& load_plugin(const PluginLibrary& of) {
  const auto entry = reinterpret_cast<const Plugin* (*)()>(plugin_entry(of));
  if (!entry || entry()->version != of.version) fail_on_version(of);
  return *entry();
}

}  // namespace hctr
