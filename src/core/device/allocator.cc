#include "core/device/allocator.h"

#include <utility>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"

namespace hctr {
namespace {

constexpr uintptr_t kCallersAlignment = 256;
thread_local const AllocatorScope* innermost_scope = nullptr;

}  // namespace

std::byte* DeviceAllocator::take(size_t wanted) {
  std::byte* const memory = allocate(wanted, stream);
  if (!memory) throw Error(Kind::device, cat("out of memory: the caller's allocator refused ", wanted, " bytes"));
  bytes += static_cast<int64_t>(wanted);
  try {
    if (reinterpret_cast<uintptr_t>(memory) % kCallersAlignment != 0)
      throw Error(Kind::usage, cat("the caller's allocator returned a block of ", wanted,
                                   " bytes that is not aligned to ", kCallersAlignment));
    zero_bytes({device, stream}, memory, wanted);
  } catch (...) {
    give_back(memory, wanted);
    throw;
  }
  return memory;
}

void DeviceAllocator::give_back(std::byte* memory, size_t given) noexcept {
  bytes -= static_cast<int64_t>(given);
  free(memory, given, stream);
}

AllocatorScope::AllocatorScope(std::shared_ptr<DeviceAllocator> allocator, bool rows)
    : allocator_(std::move(allocator)), rows_(rows), before_(std::exchange(innermost_scope, this)) {}

AllocatorScope::~AllocatorScope() { innermost_scope = before_; }

std::shared_ptr<DeviceAllocator> AllocatorScope::of(Device device) {
  const AllocatorScope* const scope = innermost_scope;
  return scope && scope->allocator_ && scope->allocator_->device == device ? scope->allocator_ : nullptr;
}

std::shared_ptr<DeviceAllocator> AllocatorScope::of_rows(Device device) {
  return innermost_scope && innermost_scope->rows_ ? of(device) : nullptr;
}

}  // namespace hctr
