// A hash map from keys to rows of one size that readers use without locks while a writer changes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "store/read_epochs.h"

namespace hctr {

/// Keys of a request, and the destination of their rows: row i goes to element places[i] * stride of an array, or i *
/// stride.
struct KeysToFind {
  std::span<const int64_t> keys;
  const int32_t* places = nullptr;
};

/// Open addressing in partitions of a few thousand rows, each of which grows separately by about a tenth: memory is at
/// most 1.25 * (8 + bytes of a row) per row plus a few KiB, even while it grows. Any key is valid. A partition has a
/// sequence number that is odd while it changes (a seqlock: H.-J. Boehm, "Can seqlocks get along with programming
/// language memory models?", 2012): readers repeat reads that overlap a change, so each row is consistent.
///
/// Any thread may call any member; changes must be serialized.
class ConcurrentRows {
 public:
  /// `words`: size of a row in units of 4 bytes. `expected`: rows to reserve memory for; more may be added.
  ConcurrentRows(int64_t words, int64_t expected);
  ConcurrentRows(const ConcurrentRows&) = delete;
  ConcurrentRows& operator=(const ConcurrentRows&) = delete;
  ~ConcurrentRows();

  /// For keys whose found[i] is 0: copies their rows, if they have any, and sets found[i] to 1. Returns the number of
  /// rows found.
  int64_t find(KeysToFind, uint32_t* rows, int64_t stride, uint8_t* found) const;
  bool contains(int64_t key) const;

  /// Adds or replaces. Returns whether the key is new.
  bool put(int64_t key, const uint32_t* row);
  /// The same, but a new key replaces another one of its partition, if there is one; it then returns false.
  bool put_in_place(int64_t key, const uint32_t* row);
  bool remove(int64_t key);

  int64_t words() const { return words_; }
  int64_t size() const { return size_.load(std::memory_order_relaxed); }
  int64_t bytes() const;
  /// What bytes() will be with so many rows of so many words, once it was made for them.
  static int64_t expected_bytes(int64_t words, int64_t rows);
  /// Passes all rows, partition by partition, each as it is at one time: keys, and rows one behind the other.
  using Sink = std::function<void(std::span<const int64_t> keys, std::span<const uint32_t> rows)>;
  void each(const Sink&) const;

 private:
  struct Block;
  struct alignas(64) Partition {
    std::atomic<uint64_t> sequence{0};
    std::atomic<Block*> block{nullptr};
    int64_t size = 0;                // of writers
    std::shared_ptr<Block> owner{};  // of writers
  };
  /// The partition of a key, and the key that it uses for the row.
  struct Home {
    Partition* partition;
    int64_t key;
    uint32_t hash;
  };
  Home home_of(int64_t key) const;
  void copy_row(const Block&, int64_t slot, uint32_t* to) const;
  /// Writes to the key's slot or a free one; the partition must have a free one, and its sequence must be odd.
  void write(Block&, int64_t slot, int64_t key, const uint32_t* row) const;
  bool read(const Home&, uint32_t* to) const;
  void grow(Partition&);
  void insert(Partition&, const Home&, const uint32_t* row);
  void remove_slot(Partition&, int64_t slot);

  int64_t words_;
  mutable ReadEpochs epochs_;
  mutable std::vector<Partition> partitions_;
  mutable Partition special_;  // for the one key that means "none" in other partitions
  std::atomic<int64_t> size_{0};
  uint64_t victims_ = 0;
  mutable std::mutex changing_;
};

}  // namespace hctr
