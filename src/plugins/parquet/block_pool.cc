#include "plugins/parquet/block_pool.h"

#include <arrow/status.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

namespace hctr {
namespace {

using arrow::Status;

constexpr int kLeastBits = 12, kMostBits = 24;  // pooled sizes: 4 KiB to 16 MiB; other sizes come from the system
constexpr int64_t kKept = 512 << 20;  // limit for free blocks; 128 MiB were too few for 40 columns and 16 threads
constexpr int kSizes =
    4 * (kMostBits - kLeastBits) + 1;  // four sizes per power of two: a block is at most a quarter too large

/// The index of the smallest pooled size of at least `bytes`; negative if there is none.
int size_index(int64_t bytes) {
  if (bytes < int64_t{1} << kLeastBits || bytes > int64_t{1} << kMostBits) return -1;
  const int bits = std::bit_width(static_cast<uint64_t>(bytes)) - 1;
  const int64_t quarter = (int64_t{1} << bits) / 4;
  return static_cast<int>(4 * (bits - kLeastBits) + (bytes - (int64_t{1} << bits) + quarter - 1) / quarter);
}

int64_t size_of(int index) { return (int64_t{4} + index % 4) << (kLeastBits - 2 + index / 4); }

class BlockPool : public arrow::MemoryPool {
 public:
  Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    const int index = index_of(size, alignment);
    if (index < 0) return system_.Allocate(size, alignment, out);
    if (take(index, out)) return Status::OK();
    return system_.Allocate(size_of(index), arrow::kDefaultBufferAlignment, out);
  }

  Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment, uint8_t** pointer) override {
    const int from = index_of(old_size, alignment), to = index_of(new_size, alignment);
    if (from < 0 && to < 0) return system_.Reallocate(old_size, new_size, alignment, pointer);
    if (from == to) return Status::OK();
    uint8_t* moved = nullptr;
    ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &moved));
    std::memcpy(moved, *pointer, static_cast<size_t>(std::min(old_size, new_size)));
    Free(*pointer, old_size, alignment);
    *pointer = moved;
    return Status::OK();
  }

  void Free(uint8_t* buffer, int64_t size, int64_t alignment) override {
    const int index = index_of(size, alignment);
    if (index < 0) return system_.Free(buffer, size, alignment);
    if (!keep(index, buffer)) system_.Free(buffer, size_of(index), arrow::kDefaultBufferAlignment);
  }

  int64_t bytes_allocated() const override { return system_.bytes_allocated(); }  // the number includes free blocks
  int64_t max_memory() const override { return system_.max_memory(); }
  int64_t total_bytes_allocated() const override { return system_.total_bytes_allocated(); }
  int64_t num_allocations() const override { return system_.num_allocations(); }
  std::string backend_name() const override { return "blocks"; }

 private:
  struct alignas(64) Spare {
    std::mutex mutex;
    std::vector<uint8_t*> blocks;
  };

  static int index_of(int64_t size, int64_t alignment) {
    return alignment > arrow::kDefaultBufferAlignment ? -1 : size_index(size);
  }

  bool take(int index, uint8_t** out) {
    Spare& spare = spare_[static_cast<size_t>(index)];
    const std::lock_guard lock(spare.mutex);
    if (spare.blocks.empty()) return false;
    *out = spare.blocks.back();
    spare.blocks.pop_back();
    kept_.fetch_sub(size_of(index), std::memory_order_relaxed);
    return true;
  }

  bool keep(int index, uint8_t* block) {
    if (kept_.load(std::memory_order_relaxed) + size_of(index) > kKept) return false;
    Spare& spare = spare_[static_cast<size_t>(index)];
    const std::lock_guard lock(spare.mutex);
    spare.blocks.push_back(block);
    kept_.fetch_add(size_of(index), std::memory_order_relaxed);
    return true;
  }

  arrow::MemoryPool& system_ = *arrow::system_memory_pool();
  std::array<Spare, kSizes> spare_;
  std::atomic<int64_t> kept_ = 0;
};

}  // namespace

arrow::MemoryPool* block_pool() {
  if constexpr (HCTR_SANITIZED_PROGRAM) return arrow::system_memory_pool();
  static auto* const pool = new BlockPool;  // never destroyed: buffers may outlive static objects
  return pool;
}

}  // namespace hctr
