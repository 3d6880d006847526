// A library for LD_PRELOAD: while the file HCTR_TEST_STUCK exists, reads of files whose path ends with
// HCTR_TEST_STUCK_FILE never return, as on a disk that does not answer.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

void wait_if_stuck(int file) {
  const char *marker = std::getenv("HCTR_TEST_STUCK"), *name = std::getenv("HCTR_TEST_STUCK_FILE");
  if (!marker || !name || ::access(marker, F_OK) != 0) return;
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link, path, sizeof path);
  if (length > 0 && std::string_view(path, static_cast<size_t>(length)).ends_with(name))
    for (;;) ::pause();
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" ssize_t read(int file, void* to, size_t bytes) {
  static auto* const real = next<ssize_t(int, void*, size_t)>("read");
  wait_if_stuck(file);
  return real(file, to, bytes);
}

extern "C" ssize_t pread64(int file, void* to, size_t bytes, off64_t at) {
  static auto* const real = next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  wait_if_stuck(file);
  return real(file, to, bytes, at);
}

extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t at) {
  wait_if_stuck(file);
  return pread64(file, to, bytes, at);
}
