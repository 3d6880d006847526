// A library for LD_PRELOAD: once a file exists, one allocation is refused. HCTR_TEST_REFUSE: its path.
// HCTR_TEST_REFUSE_NTH: which allocation after that, from 1.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" void* __libc_malloc(size_t);
extern "C" void* __libc_memalign(size_t, size_t);

namespace {

std::atomic<long> allocations{0};

bool refused() {
  static const char* const file = std::getenv("HCTR_TEST_REFUSE");
  static const long nth = [] {
    const char* const text = std::getenv("HCTR_TEST_REFUSE_NTH");
    return text ? std::atol(text) : 1;
  }();
  static std::atomic<bool> armed{false};
  if (!file || (!armed && ::access(file, F_OK) != 0)) return false;
  armed = true;
  if (++allocations != nth) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" void* malloc(size_t bytes) { return refused() ? nullptr : __libc_malloc(bytes); }
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) {
  return refused() ? nullptr : __libc_memalign(alignment, bytes);
}
