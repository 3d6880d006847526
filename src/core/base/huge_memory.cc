#include "core/base/huge_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

namespace hctr {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

uintptr_t rounded_up(uintptr_t address, size_t unit) { return (address + unit - 1) / unit * unit; }

}  // namespace

HugeMemory::HugeMemory(size_t bytes) : mapped_bytes_(bytes + kHugePage) {
  void* const memory =
      ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapped_ = static_cast<std::byte*>(memory);
  const auto start = reinterpret_cast<uintptr_t>(mapped_);
  data_ = mapped_ + (rounded_up(start, kHugePage) - start);
  (void)::madvise(data_, bytes, MADV_HUGEPAGE);  // only a hint: the memory can be used without huge pages, too
}

HugeMemory::~HugeMemory() { ::munmap(mapped_, mapped_bytes_); }

void HugeMemory::release(const std::byte* from, size_t bytes) const noexcept {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = rounded_up(reinterpret_cast<uintptr_t>(from), page);
  const auto end = (reinterpret_cast<uintptr_t>(from) + bytes) / page * page;
  if (first < end) (void)::madvise(data_ + (first - reinterpret_cast<uintptr_t>(data_)), end - first, MADV_DONTNEED);
}

}  // namespace hctr
