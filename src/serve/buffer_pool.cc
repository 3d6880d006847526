#include "serve/buffer_pool.h"

#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace hctr::serve {
namespace {

// Smaller buffers are not kept: the allocator reuses their memory.
constexpr size_t kLeastKept = size_t{64} << 10;
constexpr size_t kUnit = size_t{64} << 10;

}  // namespace

struct BufferPool::State {
  using Memory = std::unique_ptr<char[]>;

  Memory find(size_t bytes, size_t& size) {
    const std::lock_guard lock(mutex);
    const auto found = unused.lower_bound(bytes);
    if (found == unused.end() || found->first / 4 > bytes) return nullptr;
    size = found->first;
    kept -= size;
    Memory memory = std::move(found->second);
    unused.erase(found);
    return memory;
  }
  void put_back(Memory memory, size_t size) noexcept {
    try {
      const std::lock_guard lock(mutex);
      if (size < kLeastKept || size > kMostKept - kept) return;
      unused.emplace(size, std::move(memory));
      kept += size;
    } catch (const std::bad_alloc&) {
      // There is no memory for the list entry: the buffer is freed.
    }
  }

  std::mutex mutex;
  std::multimap<size_t, Memory> unused;  // by size
  size_t kept = 0;
};

BufferPool::BufferPool() : state_(std::make_shared<State>()) {}

std::shared_ptr<char> BufferPool::take(size_t bytes) {
  size_t size = bytes;
  State::Memory memory = state_->find(bytes, size);
  if (!memory) {
    if (size >= kLeastKept) size = (size + kUnit - 1) / kUnit * kUnit;
    memory.reset(new char[size]);  // without std::make_unique(), which would write the memory
  }
  struct Return {
    std::shared_ptr<State> state;
    size_t size;
    void operator()(char* of) const { state->put_back(State::Memory(of), size); }
  };
  return {memory.release(), Return{state_, size}};
}

size_t BufferPool::kept() const {
  const std::lock_guard lock(state_->mutex);
  return state_->kept;
}

}  // namespace hctr::serve
