// Where the plug-ins are: libraries that are loaded when they are needed.
#pragma once

#include <filesystem>

namespace hctr {

/// The plug-in of this name beside the program; of libhuge_ctr.so beside that, or in the folder of programs of the same
/// installation. It may not be there.
std::filesystem::path plugin_file(const char* name);

}  // namespace hctr
