#include "store/shared_row_table.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/base/expect.h"
#include "core/base/prefetch.h"
#include "store/shared_row_block.h"

namespace hctr {
namespace {

constexpr size_t kKeysAhead = 32;       // keys looked up together, so that their memory accesses overlap
constexpr uint64_t kBytesOfBlock = 32;  // bytes for header, offset in the directory, and alignment

}  // namespace

SharedRowTable::SharedRowTable(std::shared_ptr<SharedSegment> segment, int64_t dim, int64_t expected)
    : segment_(std::move(segment)), dim_(dim), blocks_(shared_blocks_for(expected)) {
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
  const int bits = shared_bits_of(directory.size());
  const size_t count = wanted.keys.size();
  const auto row_bytes = static_cast<size_t>(dim_) * sizeof(float);
  int64_t hits = 0, asked = 0;
  uint64_t hashes[kKeysAhead], at[kKeysAhead];
  uint64_t offsets[kKeysAhead];
  Block blocks[kKeysAhead];
  for (size_t begin = 0; begin < count; begin += kKeysAhead) {
    const size_t some = std::min(kKeysAhead, count - begin);
    for (size_t i = 0; i < some; ++i) {
      hashes[i] = shared_hash_of(wanted.keys[begin + i]);
      prefetch(&directory[shared_block_of(hashes[i], bits)]);
    }
    for (size_t i = 0; i < some; ++i) {
      offsets[i] = directory[shared_block_of(hashes[i], bits)];
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
  const int bits = shared_bits_of(directory.size());
  const uint64_t hash = shared_hash_of(key);
  const Block block = block_at(directory[shared_block_of(hash, bits)]);
  return block.find(hash, bits) < block.count;
}

int64_t SharedRowTable::size() const {
  return fresh_ ? const_cast<SharedRowTable*>(this)->show_new() : snapshot()->rows;
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
  const auto now = snapshot();  // the snapshot's pin keeps the memory of its blocks
  std::vector<int64_t> keys;
  for (const uint64_t offset : *now->blocks) {
    const Block block = block_at(offset);
    if (block.count == 0) continue;
    keys.resize(block.count);
    std::transform(block.hashes, block.hashes + block.count, keys.begin(), shared_key_of);
    sink(keys, {block.rows, block.count * static_cast<size_t>(dim_)});
  }
}

/// Skips blocks that both tables have.
void SharedRowTable::differences(LevelTable& other, const RowSink& changed, std::vector<int64_t>& removed) {
  const auto now = snapshot(), then = dynamic_cast<SharedRowTable&>(other).snapshot();
  const int bits = shared_bits_of(now->blocks->size()), old_bits = shared_bits_of(then->blocks->size());
  const auto row_bytes = static_cast<size_t>(dim_) * sizeof(float);
  for (size_t b = 0; b < now->blocks->size(); ++b) {
    const uint64_t offset = (*now->blocks)[b];
    if (bits == old_bits && offset == (*then->blocks)[b]) continue;
    const Block block = block_at(offset);
    for (uint64_t i = 0; i < block.count; ++i) {
      const Block old = block_at((*then->blocks)[shared_block_of(block.hashes[i], old_bits)]);
      const uint64_t at = old.find(block.hashes[i], old_bits);
      const float *const row = block.rows + i * static_cast<uint64_t>(dim_), *const before =
                                                                                 old.rows +
                                                                                 at * static_cast<uint64_t>(dim_);
      if (at < old.count && std::memcmp(row, before, row_bytes) == 0) continue;
      const int64_t key = shared_key_of(block.hashes[i]);
      changed({&key, 1}, {row, static_cast<size_t>(dim_)});
    }
  }
  for (size_t b = 0; b < then->blocks->size(); ++b) {
    const uint64_t offset = (*then->blocks)[b];
    if (bits == old_bits && offset == (*now->blocks)[b]) continue;
    const Block old = block_at(offset);
    for (uint64_t i = 0; i < old.count; ++i) {
      const Block block = block_at((*now->blocks)[shared_block_of(old.hashes[i], bits)]);
      if (block.find(old.hashes[i], bits) >= block.count) removed.push_back(shared_key_of(old.hashes[i]));
    }
  }
}

LevelStatistics SharedRowTable::statistics() const {
  const auto now = snapshot();
  const auto bytes = static_cast<int64_t>(now->blocks->size() * kBytesOfBlock) + now->rows * (8 + 4 * dim_);
  return {.rows = now->rows, .bytes = bytes, .asked = asked_.load(), .found = found_.load()};
}

int64_t SharedRowTable::expected_bytes(int64_t dim, int64_t rows) {
  return static_cast<int64_t>(shared_blocks_for(rows) * kBytesOfBlock) + rows * (8 + 4 * dim);
}

}  // namespace hctr
