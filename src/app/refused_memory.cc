#include "app/refused_memory.h"

#include <atomic>
#include <new>
#include <utility>

namespace hctr {
namespace {

std::atomic<MemoryReserve*> reserve_of_program{nullptr};
thread_local bool tried_after_release = false;

/// The handler for std::set_new_handler(). Returns if another attempt at the allocation may succeed.
void release_reserve() {
  MemoryReserve* const reserve = reserve_of_program;
  if (reserve && reserve->release()) return;
  // Another thread may have released the reserve after this thread's allocation failed.
  if (reserve && reserve->released() && !std::exchange(tried_after_release, true)) return;
  throw std::bad_alloc();
}

}  // namespace

RefusedMemory::RefusedMemory(MemoryReserve& reserve) {
  reserve_of_program = &reserve;
  std::set_new_handler(release_reserve);
}

RefusedMemory::~RefusedMemory() {
  std::set_new_handler(nullptr);
  reserve_of_program = nullptr;
}

}  // namespace hctr
