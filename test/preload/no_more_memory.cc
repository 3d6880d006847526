// LD_PRELOAD library: while the file HCTR_TEST_NO_MEMORY exists, tables cannot commit more host memory.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

/// The program commits memory of a reserved range with mprotect(). This replacement fails with ENOMEM.
extern "C" int mprotect(void* at, size_t bytes, int protection) {
  static auto* const real = reinterpret_cast<int (*)(void*, size_t, int)>(::dlsym(RTLD_NEXT, "mprotect"));
  const char* const file = std::getenv("HCTR_TEST_NO_MEMORY");
  if (file && protection == (PROT_READ | PROT_WRITE) && ::access(file, F_OK) == 0) {
    errno = ENOMEM;
    return -1;
  }
  return real(at, bytes, protection);
}
