#include "core/base/plugin_file.h"

#include <dlfcn.h>

#include <string>
#include <system_error>

namespace hctr {
namespace {

namespace fs = std::filesystem;

/// The file that this code was loaded from: the program, or the library.
fs::path own_file() {
  std::error_code problem;
  Dl_info found{};
  if (::dladdr(reinterpret_cast<const void*>(&plugin_file), &found) != 0 && found.dli_fname)
    if (const fs::path file = found.dli_fname; file.filename().string().find(".so") != std::string::npos)
      return fs::canonical(file, problem);
  return fs::read_symlink("/proc/self/exe", problem);  // a program may have been started by another name
}

}  // namespace

fs::path plugin_file(const char* name) {
  static const fs::path own = own_file();
  const fs::path beside = own.parent_path();
  std::error_code problem;
  for (const char* folder : {"", "../bin", "../../bin"})  // lib, lib/x86_64-linux-gnu
    if (fs::path file = beside / folder / name; fs::exists(file, problem)) return file;
  return beside / name;
}

}  // namespace hctr
