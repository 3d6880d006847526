// The map of a table's rows on disk: from keys to places in a file.
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

/// A row on disk.
struct DiskRow {
  int64_t key = 0;
  int32_t slot = 0;  ///< 0 if rows belong to keys alone
  uint32_t place = 0, crc = 0;
  uint32_t last_seen = 0, occurrences = 0;  ///< access statistics
  uint32_t base : 30 = 0;                   ///< its place in the last full checkpoint; 0: not in it
  uint32_t marks : 2 = 0;                   ///< kChangedSince... of ops/embedding/access_stats.h
};

/// A hash table of rows by (key, slot): open addressing, linear probing, at most 3/4 full. It is in memory, or in a
/// file if memory has no room for it. For one thread at a time.
class DiskMap {
 public:
  static constexpr uint32_t kNoPlace = UINT32_MAX;  ///< never the place of a row
  DiskMap();

  int64_t rows() const { return rows_; }
  size_t entries() const { return entries_.size(); }
  static constexpr int64_t bytes_of(size_t entries) { return static_cast<int64_t>(entries * sizeof(DiskRow)); }
  int64_t bytes() const { return bytes_of(entries()); }
  bool in_file() const { return file_ != nullptr; }
  /// The entries needed for this many more rows: the current number, or a multiple of it.
  size_t entries_for(int64_t more_rows) const;
  /// Moves the rows to a table of this many entries, a power of two; it is in a file in `folder` unless that is empty.
  /// Errors: those of ScratchMemory; std::bad_alloc; nothing has changed then.
  void resize(size_t entries, const fs::path& folder);

  /// Null: not found.
  const DiskRow* find(int64_t key, int32_t slot) const;
  /// Errors: a bug of the caller if the row does not exist.
  DiskRow& at(int64_t key, int32_t slot);
  /// Adds a row that does not exist yet; entries_for(1) must equal entries().
  void insert(const DiskRow&);
  /// Removes an existing row and returns its place.
  uint32_t erase(int64_t key, int32_t slot);

  [[gnu::always_inline]] void prefetch(int64_t key, int32_t slot) const { hctr::prefetch(&entries_[home(key, slot)]); }
  /// Calls visit(row) for all rows, in no particular order. visit() may not change keys and slots.
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
  size_t position(int64_t key, int32_t slot) const;  // the entry of the row, or the free entry for it

  std::vector<DiskRow> memory_;
  std::unique_ptr<ScratchMemory> file_;
  std::span<DiskRow> entries_;  // in memory_ or file_; kNoPlace: free
  int64_t rows_ = 0;
};

}  // namespace hctr
