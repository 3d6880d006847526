// Changes of a SharedRowTable: collected in memory, then written as new blocks.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "store/shared_row_block.h"
#include "store/shared_row_table.h"

namespace hctr {
namespace {

constexpr int64_t kLeastChanges = int64_t{1} << 20;  // changes of fewer bytes stay in memory until the commit

}  // namespace

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
    if (const size_t next = shared_block_of(hash, bits); next != place) {
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

/// The last change of each key, ordered by hash.
std::vector<SharedRowTable::Change> SharedRowTable::sorted_changes() const {
  std::vector<std::pair<uint64_t, size_t>> order(changed_keys_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = {shared_hash_of(changed_keys_[i]), i};
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
  const int bits = shared_bits_of(blocks_.size());
  const uint64_t wanted = shared_blocks_for(rows_ + std::ssize(changes));
  const bool splits = wanted > blocks_.size();
  Directory split(splits ? wanted : 0);
  Directory& directory = splits ? split : blocks_;
  const int new_bits = shared_bits_of(directory.size());
  size_t next = 0;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const size_t first = next;
    while (next < changes.size() && shared_block_of(changes[next].hash, bits) == b) ++next;
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

/// Makes the rows of a new table, which is loaded before its first commit, visible to this process.
int64_t SharedRowTable::show_new() {
  const std::lock_guard lock(changing_);
  if (!fresh_) return rows_;
  write_changes();
  current_.replace(
      std::make_shared<const Snapshot>(Snapshot{nullptr, std::make_shared<const Directory>(blocks_), rows_}));
  return rows_;
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

}  // namespace hctr
