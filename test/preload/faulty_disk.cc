// LD_PRELOAD library: while the file HCTR_TEST_FAULT exists, files whose path contains HCTR_TEST_FAULT_FILE behave as
// on a faulty disk. The content of HCTR_TEST_FAULT selects the fault. "stuck": reads and fsync() block until
// HCTR_TEST_FAULT is removed. "EIO": reads fail. "slow": each read and write takes some milliseconds. "behind":
// readahead calls block, so only background threads block, not steps. An empty file selects no fault, because a shell
// creates the file before writing its content.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

ssize_t real_read(int file, void* to, size_t bytes) {
  static auto* const real = next<ssize_t(int, void*, size_t)>("read");
  return real(file, to, bytes);
}

enum class Fault { none, stuck, fails, slow, behind };

Fault fault_of(int file) {
  const char *marker = std::getenv("HCTR_TEST_FAULT"), *part = std::getenv("HCTR_TEST_FAULT_FILE");
  if (!marker || !part || ::access(marker, F_OK) != 0) return Fault::none;
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link, path, sizeof path);
  if (length <= 0 || std::string_view(path, static_cast<size_t>(length)).find(part) == std::string_view::npos)
    return Fault::none;
  char text[8];
  const int opened = ::open(marker, O_RDONLY | O_CLOEXEC);
  const ssize_t got = opened < 0 ? 0 : real_read(opened, text, sizeof text);
  if (opened >= 0) ::close(opened);
  const std::string_view said(text, static_cast<size_t>(got > 0 ? got : 0));
  return said.starts_with("EIO")      ? Fault::fails
         : said.starts_with("slow")   ? Fault::slow
         : said.starts_with("stuck")  ? Fault::stuck
         : said.starts_with("behind") ? Fault::behind
                                      : Fault::none;
}

void wait_while_stuck(int file) {
  while (fault_of(file) == Fault::stuck) ::usleep(10000);
}

/// Whether reads of `file` must fail.
bool read_fails(int file) {
  switch (fault_of(file)) {
    case Fault::stuck:
      wait_while_stuck(file);
      break;
    case Fault::fails:
      errno = EIO;
      return true;
    case Fault::slow:
      ::usleep(5000);
      break;
    case Fault::none:
    case Fault::behind:
      break;
  }
  return false;
}

}  // namespace

extern "C" ssize_t read(int file, void* to, size_t bytes) { return read_fails(file) ? -1 : real_read(file, to, bytes); }

extern "C" ssize_t pread64(int file, void* to, size_t bytes, off64_t at) {
  static auto* const real = next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  return read_fails(file) ? -1 : real(file, to, bytes, at);
}

extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t at) { return pread64(file, to, bytes, at); }

extern "C" ssize_t pwrite64(int file, const void* from, size_t bytes, off64_t at) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  if (fault_of(file) == Fault::slow) ::usleep(5000);
  return real(file, from, bytes, at);
}

extern "C" ssize_t pwrite(int file, const void* from, size_t bytes, off_t at) {
  return pwrite64(file, from, bytes, at);
}

extern "C" int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  wait_while_stuck(file);
  return real(file);
}

extern "C" int posix_fadvise64(int file, off64_t at, off64_t bytes, int advice) {
  static auto* const real = next<int(int, off64_t, off64_t, int)>("posix_fadvise64");
  if (fault_of(file) == Fault::behind) ::usleep(20000);
  return real(file, at, bytes, advice);
}

extern "C" int posix_fadvise(int file, off_t at, off_t bytes, int advice) {
  return posix_fadvise64(file, at, bytes, advice);
}
