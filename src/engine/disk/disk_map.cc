#include "engine/disk/disk_map.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr size_t kFirstEntries = 1024;  // must be a power of two

constexpr size_t most_rows_of(size_t entries) { return entries / 4 * 3; }

}  // namespace

DiskMap::DiskMap() { resize(kFirstEntries, {}); }

size_t DiskMap::entries_for(int64_t more_rows) const {
  size_t entries = entries_.size();
  while (static_cast<size_t>(rows_ + more_rows) > most_rows_of(entries)) entries *= 2;
  return entries;
}

void DiskMap::resize(size_t entries, const fs::path& folder) {
  constexpr DiskRow kFree{.place = kNoPlace};
  std::vector<DiskRow> memory;
  std::unique_ptr<ScratchMemory> file;
  std::span<DiskRow> old;
  if (folder.empty()) {
    memory.resize(entries, kFree);
    old = memory;
  } else {
    file = std::make_unique<ScratchMemory>(folder, entries * sizeof(DiskRow));
    old = {reinterpret_cast<DiskRow*>(file->data()), entries};
    std::fill(old.begin(), old.end(), kFree);
  }
  std::swap(old, entries_);
  for (const DiskRow& row : old)
    if (row.place != kNoPlace) entries_[position(row.key, row.slot)] = row;
  memory_ = std::move(memory);
  file_ = std::move(file);
}

size_t DiskMap::position(int64_t key, int32_t slot) const {
  const size_t mask = entries_.size() - 1;
  size_t at = home(key, slot);
  while (entries_[at].place != kNoPlace && (entries_[at].key != key || entries_[at].slot != slot)) at = (at + 1) & mask;
  return at;
}

const DiskRow* DiskMap::find(int64_t key, int32_t slot) const {
  const DiskRow& row = entries_[position(key, slot)];
  return row.place == kNoPlace ? nullptr : &row;
}

DiskRow& DiskMap::at(int64_t key, int32_t slot) {
  DiskRow& row = entries_[position(key, slot)];
  HCTR_EXPECT(row.place != kNoPlace, "key ", key, " is not on the disk");
  return row;
}

void DiskMap::insert(const DiskRow& row) {
  HCTR_EXPECT(static_cast<size_t>(rows_) < most_rows_of(entries_.size()), "the map of ", rows_, " rows is full");
  DiskRow& entry = entries_[position(row.key, row.slot)];
  HCTR_EXPECT(entry.place == kNoPlace, "key ", row.key, " is on the disk twice");
  entry = row;
  ++rows_;
}

uint32_t DiskMap::erase(int64_t key, int32_t slot) {
  const size_t mask = entries_.size() - 1;
  size_t hole = position(key, slot);
  const uint32_t place = entries_[hole].place;
  HCTR_EXPECT(place != kNoPlace, "key ", key, " is not on the disk");
  // Backward-shift deletion: move each following entry into the hole, unless that entry's home position is after the
  // hole.
  for (size_t at = (hole + 1) & mask; entries_[at].place != kNoPlace; at = (at + 1) & mask) {
    const size_t from_home = (at - home(entries_[at].key, entries_[at].slot)) & mask;
    if (from_home < ((at - hole) & mask)) continue;
    entries_[hole] = entries_[at];
    hole = at;
  }
  entries_[hole] = DiskRow{.place = kNoPlace};
  --rows_;
  return place;
}

}  // namespace hctr
