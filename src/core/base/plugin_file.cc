#include "core/base/plugin_file.h"

#include <dlfcn.h>

#include <string>
#include <system_error>

namespace hctr {
namespace {

namespace fs = std::filesystem;

/// The file that contains this code: the executable or the shared library.
fs::path own_file() {
  std::error_code problem;
  Dl_info found{};
  if (::dladdr(reinterpret_cast<const void*>(&plugin_file), &found) != 0 && found.dli_fname)
    if (const fs::path file = found.dli_fname; file.filename().string().find(".so") != std::string::npos)
      return fs::canonical(file, problem);
  return fs::read_symlink("/proc/self/exe", problem);  // argv[0] is not used, because it may not name the executable
}

}  // namespace

fs::path plugin_file(const char* name) {
  static const fs::path own = own_file();
  const fs::path beside = own.parent_path();
  std::error_code problem;
  // The plug-in is in the folder of own_file(), or in bin if own_file() is in lib or lib/x86_64-linux-gnu.
  for (const char* folder : {"", "../bin", "../../bin"})
    if (fs::path file = beside / folder / name; fs::exists(file, problem)) return file;
  return beside / name;
}

void* plugin_entry(const PluginLibrary& of) {
  std::error_code none;
  const fs::path beside = plugin_file(of.file);
  const bool there = fs::exists(beside, none);
  void* const library = ::dlopen(there ? beside.c_str() : of.file, RTLD_NOW | RTLD_LOCAL);
  if (library) return ::dlsym(library, of.entry);
  const std::string why = ::dlerror();
  if (there)
    throw Error(Kind::io,
                cat(of.user, " needs '", beside.string(), "', which cannot be loaded: ", why, "; if ", of.library,
                    " was removed or replaced, reinstall ", of.packages, ", or configure and build again"));
  throw Error(Kind::io,
              cat(of.user, " needs ", of.file, " next to the program, and the file is missing (", why,
                  "). Was the program copied without this file? Otherwise ", of.library,
                  " was not found when the program was built: install ", of.packages,
                  ", then configure and build again; CMake prints the result of its search after \"", of.label, ":\""));
}

void fail_on_version(const PluginLibrary& of) {
  throw Error(Kind::io,
              cat("'", plugin_file(of.file).string(), "' belongs to another version of this program; build it again"));
}

}  // namespace hctr
