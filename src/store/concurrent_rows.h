// A hash map from keys to rows of equal size. Readers take no locks while a writer changes the map.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "store/read_epochs.h"

namespace hctr {

class ThreadPool;

/// The keys of a request, and the destinations of their rows. Row i is written to element places[i] * stride of an
/// array; without `places`, to element i * stride.
struct KeysToFind {
  std::span<const int64_t> keys;
  const int32_t* places = nullptr;
};

/// Open addressing in partitions of a few thousand rows. Each partition grows separately, by about a tenth. Memory is
/// at most 1.25 * (8 + bytes of a row) per row plus a few KiB, even during growth. Every 64-bit key is valid. Each
/// partition has a sequence number, which is odd while the partition changes (a seqlock: H.-J. Boehm, "Can seqlocks get
/// along with programming language memory models?", 2012). A reader repeats a read that overlaps a change, so each row
/// is consistent.
///
/// Any thread may call any member. Several threads may put() rows of distinct keys; the caller must serialize all other
/// changes.
class ConcurrentRows {
 public:
  /// `words`: row size in units of 4 bytes. `expected`: number of rows to reserve memory for; more rows may be added.
  ConcurrentRows(int64_t words, int64_t expected);
  ConcurrentRows(const ConcurrentRows&) = delete;
  ConcurrentRows& operator=(const ConcurrentRows&) = delete;
  ~ConcurrentRows();

  /// For each key with found[i] == 0 that has a row: copies the row and sets found[i] to 1. Returns the number of rows
  /// found.
  int64_t find(KeysToFind, uint32_t* rows, int64_t stride, uint8_t* found) const;
  bool contains(int64_t key) const;
  /// The number of these keys that have a row.
  int64_t count(std::span<const int64_t> keys) const;

  /// Like put() for each key. rows: [keys, words]
  void put(std::span<const int64_t> keys, const uint32_t* rows);
  /// Adds or replaces a row. Returns whether the key is new.
  bool put(int64_t key, const uint32_t* row);
  /// Like put(). Before adding a new key, evicts another row of the key's partition, if the partition has rows.
  bool put_in_place(int64_t key, const uint32_t* row);
  bool remove(int64_t key);
  /// Like put() for each key in order, on all threads: each thread changes a part of the partitions. rows: [keys,
  /// words].
  void put_all(std::span<const int64_t> keys, const uint32_t* rows, ThreadPool&);
  /// For each key in order, on all threads: if the key has a row, copies it to `rows`, otherwise adds the row in
  /// `rows`. rows: [keys, words]
  void find_or_put_all(std::span<const int64_t> keys, uint32_t* rows, ThreadPool&);

  int64_t words() const { return words_; }
  int64_t size() const { return size_.load(std::memory_order_relaxed); }
  int64_t bytes() const;
  /// The value of bytes() for a map that is constructed for `rows` rows of `words` words and contains them.
  static int64_t expected_bytes(int64_t words, int64_t rows);
  /// Passes all rows, partition by partition. Each partition is a consistent snapshot. `rows` are contiguous.
  using Sink = std::function<void(std::span<const int64_t> keys, std::span<const uint32_t> rows)>;
  void each(const Sink&) const;

 private:
  struct Block;
  struct alignas(64) Partition {
    std::atomic<uint64_t> sequence{0};
    std::atomic<Block*> block{nullptr};
    int64_t size = 0;                // used by writers only
    std::shared_ptr<Block> owner{};  // used by writers only
  };
  /// The partition of a key, and the key under which that partition stores the row.
  struct Home {
    Partition* partition;
    int64_t key;
    uint32_t hash;
  };
  Home home_of(int64_t key) const;
  void copy_row(const Block&, int64_t slot, uint32_t* to) const;
  /// Writes to the key's slot or a free slot. Requires a free slot and an odd sequence number.
  void write(Block&, int64_t slot, int64_t key, const uint32_t* row) const;
  bool read(const Home&, uint32_t* to) const;
  /// Allocates the first block of each partition.
  void allocate(int64_t slots);
  void grow(Partition&);
  // The following functions return whether the key is new. The caller then changes size_.
  bool put(const Home&, const uint32_t* row);
  bool find_or_put(const Home&, uint32_t* row);
  bool add(Partition&, int64_t slot, const Home&, const uint32_t* row);
  /// Calls body(home, i) for each key i in the partitions [first, last), in order.
  template <class Body>
  void for_homes(int64_t first, int64_t last, std::span<const int64_t> keys, const Body&);
  /// Calls body(first, last) with a range of partitions for each thread.
  template <class Body>
  void for_parts(ThreadPool&, const Body&) const;
  void load_into_caches(std::span<const Home>) const;
  int64_t row_at(size_t i) const { return static_cast<int64_t>(i) * words_; }
  void insert(Partition&, int64_t slot, const Home&, const uint32_t* row);
  void remove_slot(Partition&, int64_t slot);

  int64_t words_;
  mutable ReadEpochs epochs_;
  mutable std::vector<Partition> partitions_;
  mutable Partition special_;  // stores the row of the key kNoKey, which marks free slots in the other partitions
  std::atomic<int64_t> size_{0};
  uint64_t victims_ = 0;
  /// Each mutex serializes the changes of some partitions.
  static constexpr size_t kLocks = 64;
  mutable std::array<std::mutex, kLocks> changing_;
  std::mutex retiring_;  // guards ReadEpochs::retire()
  std::mutex& lock_of(const Partition& partition) const {
    return changing_[&partition == &special_ ? 0 : static_cast<size_t>(&partition - partitions_.data()) % kLocks];
  }
};

}  // namespace hctr
