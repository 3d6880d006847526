#include "store/shared_row_table.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "core/base/expect.h"
#include "core/base/prefetch.h"

namespace hctr {
namespace {

constexpr uint64_t kMostRowsOfBlock = 256;           // mean over the blocks; above it, the number of blocks doubles
constexpr size_t kKeysAhead = 32;                    // keys looked up together, so that their memory accesses overlap
constexpr uint64_t kWalk = 1024;                     // larger blocks are searched by bisection
constexpr int64_t kLeastChanges = int64_t{1} << 20;  // bytes
constexpr uint64_t kBytesOfBlock = 32;               // header, offset in the directory, and alignment
constexpr uint64_t kFirstFactor = 0xBF58476D1CE4E5B9u, kSecondFactor = 0x94D049BB133111EBu;

/// The multiplicative inverse modulo 2^64, by Newton's iteration.
constexpr uint64_t inverse(uint64_t of) {
  uint64_t value = of;
  for (int i = 0; i < 6; ++i) value *= 2 - of * value;
  return value;
}
static_assert(kFirstFactor * inverse(kFirstFactor) == 1 && kSecondFactor * inverse(kSecondFactor) == 1);

/// The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, 2014), which is a bijection.
uint64_t hash_of(int64_t key) {
  auto x = static_cast<uint64_t>(key);
  x = (x ^ (x >> 30)) * kFirstFactor;
  x = (x ^ (x >> 27)) * kSecondFactor;
  return x ^ (x >> 31);
}

int64_t key_of(uint64_t hash) {
  uint64_t x = (hash ^ (hash >> 31) ^ (hash >> 62)) * inverse(kSecondFactor);
  x = (x ^ (x >> 27) ^ (x >> 54)) * inverse(kFirstFactor);
  return static_cast<int64_t>(x ^ (x >> 30) ^ (x >> 60));
}

int bits_of(size_t blocks) { return std::countr_zero(blocks); }
/// The number of the block with a hash.
size_t place_of(uint64_t hash, int bits) { return bits == 0 ? 0 : static_cast<size_t>(hash >> (64 - bits)); }

uint64_t blocks_for(int64_t rows) {
  return std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 1)) / kMostRowsOfBlock + 1);
}

}  // namespace

struct SharedRowTable::Block {
  uint64_t count = 0, made = 0;
  const uint64_t* hashes = nullptr;
  const float* rows = nullptr;

  uint64_t guess(uint64_t hash, int bits) const {
    using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(hash << bits) * count) >> 64);
  }
  /// The index of the hash, or `count`.
  uint64_t find(uint64_t hash, int bits) const {
    if (count == 0) return 0;
    uint64_t at = guess(hash, bits);
    if (count > kWalk) {
      at = static_cast<uint64_t>(std::lower_bound(hashes, hashes + count, hash) - hashes);
    } else {
      while (at > 0 && hashes[at] > hash) --at;
      while (at + 1 < count && hashes[at] < hash) ++at;
    }
    return at < count && hashes[at] == hash ? at : count;
  }
};

struct SharedRowTable::Change {
  uint64_t hash;
  const float* row;  // null: removed
};

/// Collects the rows of new blocks in the order of their hashes.
struct SharedRowTable::NewBlocks {
  SharedRowTable& table;
  int bits;
  Directory& directory;
  size_t place = 0;
  std::vector<uint64_t> hashes{};
  std::vector<const float*> rows{};

  void add(uint64_t hash, const float* row) {
    if (const size_t next = place_of(hash, bits); next != place) {
      write();
      place = next;
    }
    hashes.push_back(hash);
    rows.push_back(row);
  }
  void write() {
    if (hashes.empty()) return;
    const uint64_t count = hashes.size();
    const auto row_bytes = static_cast<size_t>(table.dim_) * sizeof(float);
    directory[place] = table.allocate(table.block_bytes(count));
    std::byte* to = table.segment_->memory(directory[place]);
    const uint64_t header[2] = {count, table.segment_->commits() + 1};
    static_assert(sizeof header == kHeaderBytes);
    std::memcpy(to, header, sizeof header);
    std::memcpy(to += sizeof header, hashes.data(), count * sizeof(uint64_t));
    to += count * sizeof(uint64_t);
    for (const float* row : rows) {
      std::memcpy(to, row, row_bytes);
      to += row_bytes;
    }
    hashes.clear();
    rows.clear();
  }
};

SharedRowTable::SharedRowTable(std::shared_ptr<SharedSegment> segment, int64_t dim, int64_t expected)
    : segment_(std::move(segment)), dim_(dim), blocks_(blocks_for(expected)) {
  current_.replace(std::make_shared<const Snapshot>(Snapshot{nullptr, std::make_shared<const Directory>(1), 0}));
}

SharedRowTable::SharedRowTable(std::shared_ptr<const SharedSegment::Pin> pin, const Stored& stored,
                               const SharedRowTable* before)
    : segment_(pin->segment), dim_(stored.dim), fresh_(false), stored_(stored), rows_(stored.rows) {
  if (dim_ < 1 || dim_ > (int64_t{1} << 24) || stored.rows < 0 || !std::has_single_bit(stored.blocks) ||
      stored.blocks > (uint64_t{1} << 40))
    throw Error(Kind::data, cat("shared memory '", segment_->name(), "' is damaged: a table of ", stored.rows,
                                " rows of ", dim_, " elements in ", stored.blocks, " blocks"));
  blocks_.resize(stored.blocks);
  std::memcpy(blocks_.data(), segment_->at(stored.directory, directory_bytes()) + sizeof(uint64_t),
              blocks_.size() * sizeof(uint64_t));
  const auto known = before ? before->snapshot() : nullptr;
  const bool comparable = known && before->dim_ == dim_ && known->blocks->size() == blocks_.size();
  for (size_t b = 0; b < blocks_.size(); ++b)
    if (blocks_[b] != 0 && !(comparable && (*known->blocks)[b] == blocks_[b])) {
      uint64_t rows = 0;
      std::memcpy(&rows, segment_->at(blocks_[b], sizeof rows), sizeof rows);
      if (rows > static_cast<uint64_t>(stored.rows) || rows > UINT32_MAX)
        throw Error(Kind::data, cat("shared memory '", segment_->name(), "' is damaged: a block of ", rows, " rows"));
      segment_->at(blocks_[b], block_bytes(rows));
    }
  if (before) asked_ = before->asked_.load(), found_ = before->found_.load();
  current_.replace(std::make_shared<const Snapshot>(
      Snapshot{std::move(pin), std::make_shared<const Directory>(blocks_), stored.rows}));
}

std::shared_ptr<const SharedRowTable::Snapshot> SharedRowTable::snapshot() const {
  const decltype(current_)::Reading reading(current_);
  return *reading;
}

SharedRowTable::Block SharedRowTable::block_at(uint64_t offset) const {
  Block block;
  if (offset == 0) return block;
  const std::byte* const from = segment_->memory(offset);
  std::memcpy(&block.count, from, sizeof block.count);
  std::memcpy(&block.made, from + sizeof block.count, sizeof block.made);
  block.hashes = reinterpret_cast<const uint64_t*>(from + kHeaderBytes);
  block.rows = reinterpret_cast<const float*>(block.hashes + block.count);
  return block;
}

int64_t SharedRowTable::get(KeysToFind wanted, float* rows, int64_t stride, uint8_t* found) {
  const decltype(current_)::Reading reading(current_);
  const Directory& directory = *(*reading)->blocks;
  const int bits = bits_of(directory.size());
  const size_t count = wanted.keys.size();
  const auto row_bytes = static_cast<size_t>(dim_) * sizeof(float);
  int64_t hits = 0, asked = 0;
  uint64_t hashes[kKeysAhead], at[kKeysAhead];
  uint64_t offsets[kKeysAhead];
  Block blocks[kKeysAhead];
  for (size_t begin = 0; begin < count; begin += kKeysAhead) {
    const size_t some = std::min(kKeysAhead, count - begin);
    for (size_t i = 0; i < some; ++i) {
      hashes[i] = hash_of(wanted.keys[begin + i]);
      prefetch(&directory[place_of(hashes[i], bits)]);
    }
    for (size_t i = 0; i < some; ++i) {
      offsets[i] = directory[place_of(hashes[i], bits)];
      if (offsets[i] != 0) prefetch(segment_->memory(offsets[i]));
    }
    for (size_t i = 0; i < some; ++i) {
      blocks[i] = block_at(offsets[i]);
      if (blocks[i].count > 0) prefetch(blocks[i].hashes + blocks[i].guess(hashes[i], bits));
    }
    for (size_t i = 0; i < some; ++i) {
      at[i] = blocks[i].find(hashes[i], bits);
      if (at[i] < blocks[i].count) prefetch(blocks[i].rows + at[i] * static_cast<uint64_t>(dim_), row_bytes);
    }
    for (size_t i = 0; i < some; ++i) {
      const size_t key = begin + i;
      if (found[key]) continue;
      ++asked;
      if (at[i] >= blocks[i].count) continue;
      const int64_t place = wanted.places ? wanted.places[key] : static_cast<int64_t>(key);
      std::memcpy(rows + place * stride, blocks[i].rows + at[i] * static_cast<uint64_t>(dim_), row_bytes);
      found[key] = 1;
      ++hits;
    }
  }
  asked_.fetch_add(asked, std::memory_order_relaxed);
  found_.fetch_add(hits, std::memory_order_relaxed);
  return hits;
}

bool SharedRowTable::contains(int64_t key) {
  const decltype(current_)::Reading reading(current_);
  const Directory& directory = *(*reading)->blocks;
  const int bits = bits_of(directory.size());
  const uint64_t hash = hash_of(key);
  const Block block = block_at(directory[place_of(hash, bits)]);
  return block.find(hash, bits) < block.count;
}

void SharedRowTable::put(std::span<const int64_t> keys, const float* rows) {
  const std::lock_guard lock(changing_);
  const auto first = static_cast<int64_t>(changed_rows_.size()) / dim_;
  for (size_t i = 0; i < keys.size(); ++i) row_of_change_.push_back(first + static_cast<int64_t>(i));
  changed_keys_.insert(changed_keys_.end(), keys.begin(), keys.end());
  changed_rows_.insert(changed_rows_.end(), rows, rows + static_cast<int64_t>(keys.size()) * dim_);
  const int64_t bytes = std::ssize(changed_keys_) * 16 + std::ssize(changed_rows_) * 4;
  if (bytes > std::max(kLeastChanges, rows_ * (8 + 4 * dim_) / 8)) write_changes();
}

void SharedRowTable::remove(std::span<const int64_t> keys) {
  const std::lock_guard lock(changing_);
  changed_keys_.insert(changed_keys_.end(), keys.begin(), keys.end());
  row_of_change_.resize(changed_keys_.size(), -1);
}

uint64_t SharedRowTable::allocate(uint64_t bytes) {
  const uint64_t offset = segment_->allocate(bytes);
  made_[offset] = bytes;
  return offset;
}

void SharedRowTable::release(uint64_t offset) {
  const Block block = block_at(offset);
  if (made_.erase(offset) > 0)
    segment_->free({offset, block_bytes(block.count)});
  else
    replaced_.push_back({offset, block_bytes(block.count), block.made});
}

/// The last change of each key, by hash.
std::vector<SharedRowTable::Change> SharedRowTable::sorted_changes() const {
  std::vector<std::pair<uint64_t, size_t>> order(changed_keys_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = {hash_of(changed_keys_[i]), i};
  std::sort(order.begin(), order.end());
  std::vector<Change> changes;
  changes.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i + 1 < order.size() && order[i + 1].first == order[i].first) continue;
    const int64_t row = row_of_change_[order[i].second];
    changes.push_back({order[i].first, row < 0 ? nullptr : changed_rows_.data() + row * dim_});
  }
  return changes;
}

/// Merges the rows of a block with changes.
void SharedRowTable::merge(uint64_t before, std::span<const Change> changes, NewBlocks& to) {
  const Block old = block_at(before);
  uint64_t at = 0;
  const auto row = [&](uint64_t i) { return old.rows + i * static_cast<uint64_t>(dim_); };
  for (const Change& change : changes) {
    for (; at < old.count && old.hashes[at] < change.hash; ++at) to.add(old.hashes[at], row(at));
    const bool replaces = at < old.count && old.hashes[at] == change.hash;
    at += replaces;
    if (change.row) to.add(change.hash, change.row);
    rows_ += (change.row ? 1 : 0) - (replaces ? 1 : 0);
  }
  for (; at < old.count; ++at) to.add(old.hashes[at], row(at));
}

void SharedRowTable::write_changes() {
  const std::vector<Change> changes = sorted_changes();
  const int bits = bits_of(blocks_.size());
  const uint64_t wanted = blocks_for(rows_ + std::ssize(changes));
  const bool splits = wanted > blocks_.size();
  Directory split(splits ? wanted : 0);
  Directory& directory = splits ? split : blocks_;
  const int new_bits = bits_of(directory.size());
  size_t next = 0;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const size_t first = next;
    while (next < changes.size() && place_of(changes[next].hash, bits) == b) ++next;
    const uint64_t old = blocks_[b];
    if (first == next && (!splits || old == 0)) continue;
    blocks_[b] = 0;
    NewBlocks to{.table = *this, .bits = new_bits, .directory = directory, .place = b << (new_bits - bits)};
    merge(old, std::span(changes).subspan(first, next - first), to);
    to.write();
    if (old != 0) release(old);
  }
  if (splits) blocks_ = std::move(split);
  changed_keys_ = {};
  row_of_change_ = {};
  changed_rows_ = {};
}

/// A new table is loaded before its first commit: shows its rows to this process.
int64_t SharedRowTable::show_new() {
  const std::lock_guard lock(changing_);
  if (!fresh_) return rows_;
  write_changes();
  current_.replace(
      std::make_shared<const Snapshot>(Snapshot{nullptr, std::make_shared<const Directory>(blocks_), rows_}));
  return rows_;
}

int64_t SharedRowTable::size() const {
  return fresh_ ? const_cast<SharedRowTable*>(this)->show_new() : snapshot()->rows;
}

SharedRowTable::Stored SharedRowTable::prepare(std::vector<SharedSegment::Range>& replaced) {
  const std::lock_guard lock(changing_);
  prepared_ = stored_;
  if (!fresh_ && changed_keys_.empty() && made_.empty() && replaced_.empty()) return stored_;
  write_changes();
  const uint64_t bytes = blocks_.size() * sizeof(uint64_t), commit = segment_->commits() + 1;
  prepared_ = {.dim = dim_, .rows = rows_, .blocks = blocks_.size(), .directory = allocate(bytes + sizeof(uint64_t))};
  std::memcpy(segment_->memory(prepared_.directory), &commit, sizeof commit);
  std::memcpy(segment_->memory(prepared_.directory) + sizeof commit, blocks_.data(), bytes);
  if (!fresh_) replaced.push_back(directory_range());
  replaced.insert(replaced.end(), replaced_.begin(), replaced_.end());
  return prepared_;
}

void SharedRowTable::committed(std::shared_ptr<const SharedSegment::Pin> pin) {
  const std::lock_guard lock(changing_);
  const auto before = snapshot();
  const bool same = !fresh_ && stored_.directory == prepared_.directory;
  stored_ = prepared_;
  fresh_ = false;
  made_.clear();
  replaced_.clear();
  current_.replace(std::make_shared<const Snapshot>(
      Snapshot{std::move(pin), same ? before->blocks : std::make_shared<const Directory>(blocks_), stored_.rows}));
}

void SharedRowTable::roll_back() {
  const std::lock_guard lock(changing_);
  for (const auto& [offset, bytes] : made_) segment_->free({offset, bytes});
  made_.clear();
  replaced_.clear();
  changed_keys_ = {};
  row_of_change_ = {};
  changed_rows_ = {};
  rows_ = stored_.rows;
  const auto now = snapshot();
  blocks_ = fresh_ ? Directory(1) : *now->blocks;
  if (fresh_)
    current_.replace(std::make_shared<const Snapshot>(Snapshot{nullptr, std::make_shared<const Directory>(1), 0}));
}

std::vector<SharedSegment::Range> SharedRowTable::used() const {
  const std::lock_guard lock(changing_);
  if (fresh_) return {};
  std::vector<SharedSegment::Range> all = {directory_range()};
  for (const uint64_t offset : *snapshot()->blocks)
    if (offset != 0) {
      const Block block = block_at(offset);
      all.push_back({offset, block_bytes(block.count), block.made});
    }
  return all;
}

SharedSegment::Range SharedRowTable::directory_range() const {
  uint64_t made = 0;
  std::memcpy(&made, segment_->memory(stored_.directory), sizeof made);
  return {stored_.directory, directory_bytes(), made};
}

void SharedRowTable::each(const RowSink& sink) {
  const auto now = snapshot();  // the pin keeps its memory
  std::vector<int64_t> keys;
  for (const uint64_t offset : *now->blocks) {
    const Block block = block_at(offset);
    if (block.count == 0) continue;
    keys.resize(block.count);
    std::transform(block.hashes, block.hashes + block.count, keys.begin(), key_of);
    sink(keys, {block.rows, block.count * static_cast<size_t>(dim_)});
  }
}

/// Skips blocks that both tables have.
void SharedRowTable::differences(LevelTable& other, const RowSink& changed, std::vector<int64_t>& removed) {
  const auto now = snapshot(), then = dynamic_cast<SharedRowTable&>(other).snapshot();
  const int bits = bits_of(now->blocks->size()), old_bits = bits_of(then->blocks->size());
  const auto row_bytes = static_cast<size_t>(dim_) * sizeof(float);
  for (size_t b = 0; b < now->blocks->size(); ++b) {
    const uint64_t offset = (*now->blocks)[b];
    if (bits == old_bits && offset == (*then->blocks)[b]) continue;
    const Block block = block_at(offset);
    for (uint64_t i = 0; i < block.count; ++i) {
      const Block old = block_at((*then->blocks)[place_of(block.hashes[i], old_bits)]);
      const uint64_t at = old.find(block.hashes[i], old_bits);
      const float *const row = block.rows + i * static_cast<uint64_t>(dim_), *const before =
                                                                                 old.rows +
                                                                                 at * static_cast<uint64_t>(dim_);
      if (at < old.count && std::memcmp(row, before, row_bytes) == 0) continue;
      const int64_t key = key_of(block.hashes[i]);
      changed({&key, 1}, {row, static_cast<size_t>(dim_)});
    }
  }
  for (size_t b = 0; b < then->blocks->size(); ++b) {
    const uint64_t offset = (*then->blocks)[b];
    if (bits == old_bits && offset == (*now->blocks)[b]) continue;
    const Block old = block_at(offset);
    for (uint64_t i = 0; i < old.count; ++i) {
      const Block block = block_at((*now->blocks)[place_of(old.hashes[i], bits)]);
      if (block.find(old.hashes[i], bits) >= block.count) removed.push_back(key_of(old.hashes[i]));
    }
  }
}

LevelStatistics SharedRowTable::statistics() const {
  const auto now = snapshot();
  const auto bytes = static_cast<int64_t>(now->blocks->size() * kBytesOfBlock) + now->rows * (8 + 4 * dim_);
  return {.rows = now->rows, .bytes = bytes, .asked = asked_.load(), .found = found_.load()};
}

int64_t SharedRowTable::expected_bytes(int64_t dim, int64_t rows) {
  return static_cast<int64_t>(blocks_for(rows) * kBytesOfBlock) + rows * (8 + 4 * dim);
}

}  // namespace hctr
