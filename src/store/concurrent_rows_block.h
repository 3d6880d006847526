// The slots of a partition of ConcurrentRows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "core/base/huge_memory.h"
#include "store/concurrent_rows.h"

namespace hctr {

inline constexpr int64_t kFreeSlot = std::numeric_limits<int64_t>::min();  ///< the key of a free slot

/// Rows of an even number of words are read and written in pairs of words.
struct ConcurrentRows::Block {
  Block(int64_t slots_, int64_t words)
      : slots(slots_),
        own_keys(new std::atomic<int64_t>[static_cast<size_t>(slots_)]),
        own_rows(new uint64_t[pairs_of(slots_, words)]),
        keys(own_keys.get()),
        rows(own_rows.get()) {
    mark_free();
  }
  /// Places the arrays in a part of `from`, memory that several blocks share.
  Block(int64_t slots_, int64_t words, std::shared_ptr<const HugeMemory> from, std::byte* keys_at, std::byte* rows_at)
      : slots(slots_),
        memory(std::move(from)),
        row_bytes(pairs_of(slots_, words) * sizeof(uint64_t)),
        keys(reinterpret_cast<std::atomic<int64_t>*>(keys_at)),
        rows(reinterpret_cast<uint64_t*>(rows_at)) {
    mark_free();
  }
  ~Block() {
    if (!memory) return;
    memory->release(reinterpret_cast<const std::byte*>(keys), static_cast<size_t>(slots) * sizeof(int64_t));
    memory->release(reinterpret_cast<const std::byte*>(rows), row_bytes);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  static size_t pairs_of(int64_t slots, int64_t words) { return static_cast<size_t>((slots * words + 1) / 2); }
  void mark_free() {
    for (int64_t i = 0; i < slots; ++i) keys[i].store(kFreeSlot, std::memory_order_relaxed);
  }
  int64_t first(uint32_t hash) const { return static_cast<int64_t>((static_cast<uint64_t>(hash) * slots64()) >> 32); }
  uint64_t slots64() const { return static_cast<uint64_t>(slots); }
  int64_t next(int64_t slot) const { return slot + 1 == slots ? 0 : slot + 1; }
  /// The slot with the key, or a free slot if the key is missing.
  int64_t slot_of(int64_t key, uint32_t hash) const {
    int64_t slot = first(hash);
    for (int64_t tries = 0; tries < slots; ++tries, slot = next(slot)) {
      const int64_t there = keys[slot].load(std::memory_order_acquire);
      if (there == key || there == kFreeSlot) return slot;
    }
    return slot;
  }
  bool has(int64_t slot, int64_t key) const { return keys[slot].load(std::memory_order_relaxed) == key; }
  uint32_t* row(int64_t slot, int64_t words) const { return reinterpret_cast<uint32_t*>(rows) + slot * words; }

  int64_t slots;
  std::shared_ptr<const HugeMemory> memory{};  // null: the block owns its arrays
  size_t row_bytes = 0;                        // size of the rows in `memory`
  std::unique_ptr<std::atomic<int64_t>[]> own_keys{};
  std::unique_ptr<uint64_t[]> own_rows{};
  std::atomic<int64_t>* keys;
  uint64_t* rows;
};

}  // namespace hctr
