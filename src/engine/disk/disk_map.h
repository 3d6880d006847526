// The map of a table's rows on disk, from keys to record numbers in a file.
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

/// A row on disk: `place` is its record number in the file.
struct DiskRow {
  int64_t key = 0;
  int32_t slot = 0;  ///< 0 if the table's rows do not depend on slots
  uint32_t place = 0, crc = 0;
  uint32_t last_seen = 0, occurrences = 0;  ///< access statistics
  uint32_t base : 30 = 0;                   ///< record number in the last full checkpoint; 0: none
  uint32_t marks : 2 = 0;                   ///< flags kChangedSince... of ops/embedding/access_stats.h
};

/// A hash table of rows by (key, slot): open addressing, linear probing, load factor at most 3/4. Stored in memory, or
/// in a file if the host budget is exhausted. Not thread-safe.
class DiskMap {
 public:
  static constexpr uint32_t kNoPlace = UINT32_MAX;  ///< marks a free entry
  DiskMap();

  int64_t rows() const { return rows_; }
  size_t entries() const { return entries_.size(); }
  static constexpr int64_t bytes_of(size_t entries) { return static_cast<int64_t>(entries * sizeof(DiskRow)); }
  int64_t bytes() const { return bytes_of(entries()); }
  bool in_file() const { return file_ != nullptr; }
  /// Returns the number of entries that the map needs to insert `more_rows` more rows. The result is the current number
  /// of entries times a power of two.
  size_t entries_for(int64_t more_rows) const;
  /// Rehashes to `entries` entries, a power of two. Stores the new table in a file in `folder`, or in memory if
  /// `folder` is empty. Errors: those of ScratchMemory; std::bad_alloc. After an error the map is unchanged.
  void resize(size_t entries, const fs::path& folder);

  /// Returns null if the row is not on disk.
  const DiskRow* find(int64_t key, int32_t slot) const;
  /// Errors: Error(bug) if the row is not on disk.
  DiskRow& at(int64_t key, int32_t slot);
  /// Inserts a new row. entries_for(1) must equal entries().
  void insert(const DiskRow&);
  /// Removes an existing row and returns its record number.
  uint32_t erase(int64_t key, int32_t slot);

  [[gnu::always_inline]] void prefetch(int64_t key, int32_t slot) const { hctr::prefetch(&entries_[home(key, slot)]); }
  /// Calls visit(row) for all rows in unspecified order. visit() must not change key or slot.
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
  size_t home(int64_t key, int32_t slot) const {  // where the probe sequence of the row begins
    return ops::HashIndex::hash(key, slot) & (entries_.size() - 1);
  }
  size_t position(int64_t key, int32_t slot) const;  // the row's entry, or the free entry where insert() would put it

  std::vector<DiskRow> memory_;
  std::unique_ptr<ScratchMemory> file_;
  std::span<DiskRow> entries_;  // in memory_ or file_; place kNoPlace marks a free entry
  int64_t rows_ = 0;
};

}  // namespace hctr
