#include "core/base/memory_reserve.h"

#include <sys/mman.h>

#include <utility>

#include "core/base/expect.h"

namespace hctr {

void MemoryReserve::add(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (released_ || bytes == 0) return;
  void* const more =
      data_ ? ::mremap(data_, bytes_, bytes_ + bytes, MREMAP_MAYMOVE)
            : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (more == MAP_FAILED)
    throw Error(Kind::device,
                cat("out of memory on the CPU: the ", bytes_ + bytes,
                    " bytes needed to save the model cannot be reserved; `ulimit -v` or `-d` may limit the memory"));
  data_ = more;
  bytes_ += bytes;
}

bool MemoryReserve::release() noexcept {
  const std::lock_guard lock(mutex_);
  if (!data_) return false;
  ::munmap(std::exchange(data_, nullptr), std::exchange(bytes_, 0));
  released_ = true;
  return true;
}

size_t MemoryReserve::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace hctr
