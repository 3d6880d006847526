// The map of a table's rows on a disk: from keys to places in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/files.h"
#include "core/base/prefetch.h"
#include "core/base/scratch_file.h"
#include "ops/embedding/hash_index.h"

namespace hctr {

/// A row on the disk.
struct DiskRow {
  int64_t key = 0;
  int32_t slot = 0;  ///< 0 where rows belong to keys alone
  uint32_t place = 0, crc = 0;
  uint32_t last_seen = 0, occurrences = 0;  ///< access statistics
  uint32_t base : 30 = 0;                   ///< its place in the last whole checkpoint; 0: it is not there
  uint32_t marks : 2 = 0;                   ///< kChangedSince... of ops/embedding/access_stats.h
};

/// A hash table of rows by (key, slot): open addressing, linear probing, at most 3/4 full. It lies in memory, or in a
/// file when memory has no room for it. For one thread at a time.
class DiskMap {
 public:
  static constexpr uint32_t kNoPlace = UINT32_MAX;  ///< no row has it
  DiskMap();

  int64_t rows() const { return rows_; }
  size_t entries() const { return entries_.size(); }
  static constexpr int64_t bytes_of(size_t entries) { return static_cast<int64_t>(entries * sizeof(DiskRow)); }
  int64_t bytes() const { return bytes_of(entries()); }
  bool in_file() const { return file_ != nullptr; }
  /// The entries that it needs for so many rows more: those that it has, or a multiple of them.
  size_t entries_for(int64_t more_rows) const;
  /// Moves the rows to a table of so many entries, a power of two; a file in `folder`, if it is not empty, has it.
  /// Errors: those of ScratchMemory; std::bad_alloc. Nothing has changed then.
  void resize(size_t entries, const fs::path& folder);

  /// Null: no such row.
  const DiskRow* find(int64_t key, int32_t slot) const;
  /// The row, which is there. Errors: a bug in the caller if not.
  DiskRow& at(int64_t key, int32_t slot);
  /// Adds a row that is not there; entries_for(1) is entries().
  void insert(const DiskRow&);
  /// Removes a row that is there, and returns its place.
  uint32_t erase(int64_t key, int32_t slot);

  [[gnu::always_inline]] void prefetch(int64_t key, int32_t slot) const { hctr::prefetch(&entries_[home(key, slot)]); }
  /// Calls visit(row) for all rows, in no particular order. Keys and slots stay as they are.
  template <class Visit>
  void for_each(const Visit& visit) {
    for (DiskRow& row : entries_)
      if (row.place != kNoPlace) visit(row);
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const DiskRow& row : entries_)
      if (row.place != kNoPlace) visit(row);
  }

 private:
  size_t home(int64_t key, int32_t slot) const {  // where searches for the row begin
    return ops::HashIndex::hash(key, slot) & (entries_.size() - 1);
  }
  size_t position(int64_t key, int32_t slot) const;  // of the row, or of the free entry for it

  std::vector<DiskRow> memory_;
  std::unique_ptr<ScratchMemory> file_;
  std::span<DiskRow> entries_;  // of memory_, or of file_; kNoPlace: free
  int64_t rows_ = 0;
};

}  // namespace hctr
