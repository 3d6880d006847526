#include "store/concurrent_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/prefetch.h"
#include "core/base/thread_pool.h"
#include "store/concurrent_rows_block.h"

namespace hctr {
namespace {

constexpr int64_t kRowsOfPartition = 2048;
constexpr int64_t kLeastPartitions = 16, kMostPartitions = 1 << 16;
// A partition grows when its load exceeds kFullLoad, and then has the load kFreshLoad.
constexpr double kFreshLoad = 0.83, kFullLoad = 0.91;
constexpr int64_t kFewSlots = 8;
constexpr size_t kAhead = 32;                    // keys looked up together, so that their memory accesses overlap
constexpr size_t kHugeBytes = size_t{16} << 20;  // maps of at least this size are in huge pages

/// The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, 2014).
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

int64_t partitions_for(int64_t rows) {
  const auto wanted = static_cast<uint64_t>(std::max<int64_t>(rows, 0)) / kRowsOfPartition + 1;
  return std::clamp(static_cast<int64_t>(std::bit_ceil(wanted)), kLeastPartitions, kMostPartitions);
}

int64_t slots_for(int64_t rows) {
  return std::max(kFewSlots, static_cast<int64_t>(static_cast<double>(rows) / kFreshLoad) + 1);
}

}  // namespace

ConcurrentRows::ConcurrentRows(int64_t words, int64_t expected)
    : words_(words), partitions_(static_cast<size_t>(partitions_for(expected))) {
  allocate(slots_for(expected / std::ssize(partitions_)));
  special_.owner = std::make_shared<Block>(2, words_);
  special_.block.store(special_.owner.get());
}

void ConcurrentRows::allocate(int64_t slots) {
  const size_t key_bytes = static_cast<size_t>(slots) * sizeof(int64_t);
  const size_t row_bytes = Block::pairs_of(slots, words_) * sizeof(uint64_t);
  // The keys of all partitions come before all rows. Marking keys as free thus writes no pages that contain rows.
  constexpr size_t kCacheLine = 64;
  const size_t rows_at = (partitions_.size() * key_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  const size_t all = rows_at + partitions_.size() * row_bytes;
  const auto memory = all < kHugeBytes ? nullptr : std::make_shared<const HugeMemory>(all);
  std::byte* keys = memory ? memory->data() : nullptr;
  std::byte* rows = memory ? memory->data() + rows_at : nullptr;
  for (Partition& partition : partitions_) {
    partition.owner =
        memory ? std::make_shared<Block>(slots, words_, memory, keys, rows) : std::make_shared<Block>(slots, words_);
    partition.block.store(partition.owner.get());
    if (memory) keys += key_bytes, rows += row_bytes;
  }
}

ConcurrentRows::~ConcurrentRows() = default;

ConcurrentRows::Home ConcurrentRows::home_of(int64_t key) const {
  if (key == kFreeSlot) return {&special_, 0, 0};
  const uint64_t hash = mixed(static_cast<uint64_t>(key));
  const size_t partition = ((hash >> 32) * partitions_.size()) >> 32;
  return {&partitions_[partition], key, static_cast<uint32_t>(hash)};
}

void ConcurrentRows::copy_row(const Block& block, int64_t slot, uint32_t* to) const {
  uint32_t* const row = block.row(slot, words_);
  if (words_ % 2 == 0) {
    auto* const pairs = reinterpret_cast<uint64_t*>(row);
    for (int64_t i = 0; i < words_ / 2; ++i) {
      const uint64_t pair = std::atomic_ref(pairs[i]).load(std::memory_order_acquire);
      std::memcpy(to + 2 * i, &pair, sizeof pair);
    }
  } else {
    for (int64_t i = 0; i < words_; ++i) to[i] = std::atomic_ref(row[i]).load(std::memory_order_acquire);
  }
}

void ConcurrentRows::write(Block& block, int64_t slot, int64_t key, const uint32_t* from) const {
  uint32_t* const row = block.row(slot, words_);
  if (words_ % 2 == 0) {
    auto* const pairs = reinterpret_cast<uint64_t*>(row);
    for (int64_t i = 0; i < words_ / 2; ++i) {
      uint64_t pair;
      std::memcpy(&pair, from + 2 * i, sizeof pair);
      std::atomic_ref(pairs[i]).store(pair, std::memory_order_release);
    }
  } else {
    for (int64_t i = 0; i < words_; ++i) std::atomic_ref(row[i]).store(from[i], std::memory_order_release);
  }
  block.keys[slot].store(key, std::memory_order_release);
}

bool ConcurrentRows::read(const Home& home, uint32_t* to) const {
  const Partition& partition = *home.partition;
  for (int tries = 1;; ++tries) {
    const uint64_t before = partition.sequence.load(std::memory_order_acquire);
    if (before % 2 == 0) {
      const Block& block = *partition.block.load();
      const int64_t slot = block.slot_of(home.key, home.hash);
      const bool found = block.keys[slot].load(std::memory_order_acquire) == home.key;
      if (found && to) copy_row(block, slot, to);
      // Safe as a relaxed load: the reads above have acquire order.
      if (partition.sequence.load(std::memory_order_relaxed) == before) return found;
    }
    if (tries % 64 == 0) std::this_thread::yield();
  }
}

int64_t ConcurrentRows::find(KeysToFind wanted, uint32_t* rows, int64_t stride, uint8_t* found) const {
  const ReadEpochs::Reader reading(epochs_);
  const size_t count = wanted.keys.size();
  int64_t hits = 0;
  Home homes[kAhead];
  int64_t slots[kAhead];
  for (size_t begin = 0; begin < count; begin += kAhead) {
    const size_t some = std::min(kAhead, count - begin);
    for (size_t i = 0; i < some; ++i) {
      homes[i] = home_of(wanted.keys[begin + i]);
      prefetch(homes[i].partition);
    }
    for (size_t i = 0; i < some; ++i) {
      const Block& block = *homes[i].partition->block.load();
      slots[i] = block.first(homes[i].hash);
      prefetch(&block.keys[slots[i]]);
    }
    for (size_t i = 0; i < some; ++i) {
      const Block& block = *homes[i].partition->block.load();
      prefetch(block.row(block.slot_of(homes[i].key, homes[i].hash), words_), static_cast<size_t>(words_) * 4);
    }
    for (size_t i = 0; i < some; ++i) {
      const size_t at = begin + i;
      if (found[at]) continue;
      const int64_t place = wanted.places ? wanted.places[at] : static_cast<int64_t>(at);
      found[at] = read(homes[i], rows + place * stride);
      hits += found[at];
    }
  }
  return hits;
}

bool ConcurrentRows::contains(int64_t key) const {
  const ReadEpochs::Reader reading(epochs_);
  return read(home_of(key), nullptr);
}

void ConcurrentRows::grow(Partition& partition) {
  const Block& old = *partition.owner;
  const auto next = std::make_shared<Block>(slots_for(partition.size + 1), words_);
  std::vector<uint32_t> row(static_cast<size_t>(words_));
  for (int64_t s = 0; s < old.slots; ++s) {
    const int64_t key = old.keys[s].load(std::memory_order_relaxed);
    if (key == kFreeSlot) continue;
    copy_row(old, s, row.data());
    write(*next, next->slot_of(key, static_cast<uint32_t>(mixed(static_cast<uint64_t>(key)))), key, row.data());
  }
  const uint64_t sequence = partition.sequence.load(std::memory_order_relaxed);
  partition.sequence.store(sequence + 1, std::memory_order_relaxed);
  partition.block.store(next.get());
  partition.sequence.store(sequence + 2, std::memory_order_release);
  const std::lock_guard lock(retiring_);
  epochs_.retire(std::exchange(partition.owner, next));
}

void ConcurrentRows::insert(Partition& partition, int64_t slot, const Home& home, const uint32_t* row) {
  const uint64_t sequence = partition.sequence.load(std::memory_order_relaxed);
  partition.sequence.store(sequence + 1, std::memory_order_relaxed);
  write(*partition.owner, slot, home.key, row);
  partition.sequence.store(sequence + 2, std::memory_order_release);
}

int64_t ConcurrentRows::count(std::span<const int64_t> keys) const {
  const ReadEpochs::Reader reading(epochs_);
  int64_t rows = 0;
  Home homes[kAhead];
  for (size_t begin = 0; begin < keys.size(); begin += kAhead) {
    const size_t some = std::min(kAhead, keys.size() - begin);
    for (size_t i = 0; i < some; ++i) {
      homes[i] = home_of(keys[begin + i]);
      const Block& block = *homes[i].partition->block.load();
      prefetch(&block.keys[block.first(homes[i].hash)]);
    }
    for (size_t i = 0; i < some; ++i) rows += read(homes[i], nullptr);
  }
  return rows;
}

void ConcurrentRows::put(std::span<const int64_t> keys, const uint32_t* rows) {
  for_homes(0, std::ssize(partitions_), keys, [&](const Home& home, size_t i) { return put(home, rows + row_at(i)); });
}

void ConcurrentRows::put_all(std::span<const int64_t> keys, const uint32_t* rows, ThreadPool& threads) {
  for_parts(threads, [&](int64_t first, int64_t last) {
    for_homes(first, last, keys, [&](const Home& home, size_t i) { return put(home, rows + row_at(i)); });
  });
}

void ConcurrentRows::find_or_put_all(std::span<const int64_t> keys, uint32_t* rows, ThreadPool& threads) {
  for_parts(threads, [&](int64_t first, int64_t last) {
    for_homes(first, last, keys, [&](const Home& home, size_t i) { return find_or_put(home, rows + row_at(i)); });
  });
}

template <class Body>
void ConcurrentRows::for_parts(ThreadPool& threads, const Body& body) const {
  const int64_t partitions = std::ssize(partitions_);
  threads.parallel_for(partitions, (partitions + threads.threads() - 1) / threads.threads(), body);
}

/// `body` returns whether it has added a row. Counts the added rows in `size_`.
template <class Body>
void ConcurrentRows::for_homes(int64_t first, int64_t last, std::span<const int64_t> keys, const Body& body) {
  Home homes[kAhead];
  size_t places[kAhead];
  size_t count = 0;
  const auto pass = [&] {
    load_into_caches({homes, count});
    int64_t added = 0;
    for (size_t h = 0; h < count; ++h) added += body(homes[h], places[h]);
    if (added > 0) size_.fetch_add(added, std::memory_order_relaxed);
    count = 0;
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    const Home home = home_of(keys[i]);
    // The special partition has no number: the thread of partition 0 changes it.
    const int64_t partition = home.partition == &special_ ? 0 : home.partition - partitions_.data();
    if (partition < first || partition >= last) continue;
    prefetch(home.partition);
    homes[count] = home;
    places[count++] = i;
    if (count == kAhead) pass();
  }
  pass();
}

/// Prefetches the memory that several changes will access, so that these accesses overlap.
void ConcurrentRows::load_into_caches(std::span<const Home> homes) const {
  const ReadEpochs::Reader reading(epochs_);
  for (const Home& home : homes) prefetch(home.partition->block.load());
  for (const Home& home : homes) {
    const Block& block = *home.partition->block.load();
    prefetch(&block.keys[block.first(home.hash)]);
  }
  for (const Home& home : homes) {
    const Block& block = *home.partition->block.load();
    prefetch(block.row(block.slot_of(home.key, home.hash), words_), static_cast<size_t>(words_) * 4);
  }
}

bool ConcurrentRows::put(int64_t key, const uint32_t* row) {
  const bool is_new = put(home_of(key), row);
  if (is_new) size_.fetch_add(1, std::memory_order_relaxed);
  return is_new;
}

bool ConcurrentRows::put(const Home& home, const uint32_t* row) {
  Partition& partition = *home.partition;
  const std::lock_guard lock(lock_of(partition));
  const int64_t slot = partition.owner->slot_of(home.key, home.hash);
  if (!partition.owner->has(slot, home.key)) return add(partition, slot, home, row);
  insert(partition, slot, home, row);
  return false;
}

bool ConcurrentRows::find_or_put(const Home& home, uint32_t* row) {
  Partition& partition = *home.partition;
  const std::lock_guard lock(lock_of(partition));
  const int64_t slot = partition.owner->slot_of(home.key, home.hash);
  if (!partition.owner->has(slot, home.key)) return add(partition, slot, home, row);
  copy_row(*partition.owner, slot, row);
  return false;
}

bool ConcurrentRows::add(Partition& partition, int64_t slot, const Home& home, const uint32_t* row) {
  if (static_cast<double>(partition.size + 1) > kFullLoad * static_cast<double>(partition.owner->slots) &&
      &partition != &special_) {
    grow(partition);
    slot = partition.owner->slot_of(home.key, home.hash);
  }
  insert(partition, slot, home, row);
  ++partition.size;
  return true;
}

bool ConcurrentRows::put_in_place(int64_t key, const uint32_t* row) {
  {
    const Home home = home_of(key);
    Partition& partition = *home.partition;
    const std::lock_guard lock(lock_of(partition));
    if (partition.size > 0 && !read(home, nullptr)) {
      const Block& block = *partition.owner;
      auto slot = static_cast<int64_t>(mixed(++victims_) % block.slots64());
      while (block.keys[slot].load(std::memory_order_relaxed) == kFreeSlot) slot = block.next(slot);
      remove_slot(partition, slot);
    }
  }
  return put(key, row);
}

void ConcurrentRows::remove_slot(Partition& partition, int64_t slot) {
  Block& block = *partition.owner;
  std::vector<uint32_t> row(static_cast<size_t>(words_));
  const uint64_t sequence = partition.sequence.load(std::memory_order_relaxed);
  partition.sequence.store(sequence + 1, std::memory_order_relaxed);
  // Moves a later row into the freed slot if the row's probe sequence passes that slot (Knuth, volume 3, 6.4, algorithm
  // R).
  for (int64_t from = block.next(slot);; from = block.next(from)) {
    const int64_t key = block.keys[from].load(std::memory_order_relaxed);
    if (key == kFreeSlot) break;
    const int64_t first = block.first(static_cast<uint32_t>(mixed(static_cast<uint64_t>(key))));
    const bool stays = slot <= from ? slot < first && first <= from : slot < first || first <= from;
    if (stays) continue;
    copy_row(block, from, row.data());
    write(block, slot, key, row.data());
    slot = from;
  }
  block.keys[slot].store(kFreeSlot, std::memory_order_release);
  partition.sequence.store(sequence + 2, std::memory_order_release);
  --partition.size;
  size_.fetch_sub(1, std::memory_order_relaxed);
}

bool ConcurrentRows::remove(int64_t key) {
  const Home home = home_of(key);
  Partition& partition = *home.partition;
  const std::lock_guard lock(lock_of(partition));
  if (!read(home, nullptr)) return false;
  remove_slot(partition, partition.owner->slot_of(home.key, home.hash));
  return true;
}

int64_t ConcurrentRows::bytes() const {
  int64_t slots = special_.owner->slots;
  for (const Partition& partition : partitions_) {
    const std::lock_guard lock(lock_of(partition));
    slots += partition.owner->slots;
  }
  return slots * (8 + words_ * 4) + static_cast<int64_t>(partitions_.size() * (sizeof(Partition) + sizeof(Block)));
}

int64_t ConcurrentRows::expected_bytes(int64_t words, int64_t rows) {
  const int64_t partitions = partitions_for(rows);
  return (partitions * slots_for(rows / partitions) + 2) * (8 + words * 4) +
         partitions * static_cast<int64_t>(sizeof(Partition) + sizeof(Block));
}

void ConcurrentRows::each(const Sink& sink) const {
  std::vector<int64_t> keys;
  std::vector<uint32_t> rows;
  const auto pass = [&](const Partition& partition, bool special) {
    keys.clear();
    {
      const std::lock_guard lock(lock_of(partition));
      const Block& block = *partition.owner;
      rows.resize(static_cast<size_t>(partition.size * words_));
      for (int64_t s = 0; s < block.slots; ++s) {
        const int64_t key = block.keys[s].load(std::memory_order_relaxed);
        if (key == kFreeSlot) continue;
        copy_row(block, s, rows.data() + std::ssize(keys) * words_);
        keys.push_back(special ? kFreeSlot : key);
      }
    }
    if (!keys.empty()) sink(keys, rows);
  };
  for (const Partition& partition : partitions_) pass(partition, false);
  pass(special_, true);
}

}  // namespace hctr
