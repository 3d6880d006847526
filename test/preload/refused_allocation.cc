// LD_PRELOAD library: one allocation fails after the file HCTR_TEST_REFUSE has reached HCTR_TEST_REFUSE_LINES lines
// (default: 0, the file exists). HCTR_TEST_REFUSE_NTH selects the allocation, counted from 1.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" void* __libc_malloc(size_t);
extern "C" void* __libc_memalign(size_t, size_t);

namespace {

std::atomic<long> allocations{0};

long number_from(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::atol(text) : otherwise;
}

/// Whether the file at `path` has at least `wanted` lines. Must not allocate memory, because the replaced malloc()
/// calls it.
bool has_lines(const char* path, long wanted) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<char, 4096> bytes;
  long lines = 0;
  for (ssize_t read = 1; lines < wanted && (read = ::read(file, bytes.data(), bytes.size())) > 0;)
    lines += std::count(bytes.begin(), bytes.begin() + read, '\n');
  ::close(file);
  return lines >= wanted;
}

bool refused() {
  static const char* const file = std::getenv("HCTR_TEST_REFUSE");
  static const long nth = number_from("HCTR_TEST_REFUSE_NTH", 1), lines = number_from("HCTR_TEST_REFUSE_LINES", 0);
  static std::atomic<bool> armed{false};
  if (!file || (!armed && !has_lines(file, lines))) return false;
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
