// Finds plug-ins: libraries that are loaded on demand.
#pragma once

#include <filesystem>

namespace hctr {

/// The path of the plug-in with this name, next to the program; next to libhuge_ctr.so, or in the folder of programs of
/// the same installation. It may not exist.
std::filesystem::path plugin_file(const char* name);

}  // namespace hctr
