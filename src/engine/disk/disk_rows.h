// The table rows that do not fit in memory, stored in a file of fixed-size records.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/scratch_file.h"
#include "core/base/thread_pool.h"
#include "core/device/row_budget.h"
#include "engine/disk/disk_map.h"
#include "engine/disk/disk_places.h"
#include "engine/disk/disk_writes.h"
#include "engine/disk/fetched_records.h"
#include "ops/embedding/direct_index.h"

namespace hctr {

class DiskSnapshot;
class SnapshotUse;

/// A map from keys to records of a scratch file. The map needs 43 to 86 bytes per row. The map is in host memory, or in
/// a separate file once the host budget is exhausted. A record contains only the row's data. The map also stores a
/// checksum of each record, so that torn, altered and outdated records are detected. Not thread-safe, except
/// read_ahead().
class DiskRows : private RowDiskUser {
 public:
  using Row = DiskRow;
  static constexpr int64_t kMostBaseRows = (int64_t{1} << 30) - 1;
  /// `budget`: counts the bytes of the records; must outlive this object. `label`: the table's name in messages.
  DiskRows(RowMemory& budget, std::string label, int64_t record_bytes);
  ~DiskRows() override;
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;

  /// The maximum bytes of the map for `rows` rows.
  static constexpr int64_t bytes_in_memory(int64_t rows) { return rows * static_cast<int64_t>(sizeof(Row)) * 8 / 3; }

  /// Bytes of the map that are charged to the host budget (map_bytes) and to the disk budget (map_bytes_on_disk).
  int64_t map_bytes() const { return map_.in_file() ? 0 : map_.bytes(); }
  int64_t map_bytes_on_disk() const { return map_.in_file() ? map_.bytes() : 0; }
  bool map_on_disk() const { return map_.in_file(); }

  int64_t rows() const { return map_.rows(); }
  int64_t record_bytes() const { return record_bytes_; }
  /// Returns null if the row is not on disk. The result is valid until the next add(), which may move rows.
  const Row* find(int64_t key, int32_t slot) const { return map_.find(key, slot); }
  /// Prefetches the map entry of a row into the CPU caches, because the map is larger than the caches. To hide the
  /// memory latency, call prefetch() for a row kAhead rows before the row is looked up.
  [[gnu::always_inline]] void prefetch(int64_t key, int32_t slot) const { map_.prefetch(key, slot); }
  static constexpr size_t kAhead = 16;

  /// Adds new rows and sets their place and crc. Rows get contiguous places while at most half of the file is free and
  /// more than a quarter of the disk budget is left. Errors: Error(io) if the budget is exceeded or the file cannot be
  /// written; no row is added in this case.
  void add(std::span<Row> rows, const std::byte* records);
  /// Like add(), but a writer thread writes the records. `rows` and `records` must not change until
  /// wait_written(records). Errors: those of the budget, and the write errors of earlier records. If the write of a
  /// record fails, the record stays in memory, and read() takes it from there.
  void add_behind(std::span<Row> rows, const std::byte* records);
  /// Waits until `records`, which were passed to add_behind(), are written. Errors: Error(io) if a record could not be
  /// written.
  void wait_written(const std::byte* records);
  void wait_written();
  /// Whether records of add_behind() are only in memory, because their write is pending or has failed.
  bool has_unwritten() const { return writes_.has_unwritten(); }
  /// Reads the record of rows[i] to records[i]. Rows are results of find() or sorted_rows(). Errors: Error(io) naming
  /// the row whose record differs from what was written.
  void read(std::span<const Row> rows, std::byte* records) const;
  /// Sets the capacity of the buffer for read_ahead(), in records. 0: read_ahead() only asks the system to cache the
  /// records.
  void set_room_ahead(int64_t records);
  int64_t bytes_of_room_ahead(int64_t records) const {
    return records * (record_bytes_ + FetchedRecords::bytes_beside_record());
  }
  /// Thread-safe, also concurrently with other members. Asks the system to cache the records of rows that are on disk.
  /// Then reads and checks as many of these records as the buffer can hold. A repeated row is requested once. The
  /// results of read() stay the same: read() copies a buffered record if it has not changed, and reads and checks every
  /// other record.
  void read_ahead(std::span<const ops::RowOwner> rows) const;
  void remove(std::span<const Row> rows);
  /// Removes rows last seen before `step`, and returns how many were removed.
  int64_t expire(uint32_t step);
  /// Returns all rows in file order.
  std::vector<Row> sorted_rows() const;
  /// Clears `bit` in the marks of all rows.
  void clear_marks(uint8_t bit);
  /// Sets `base` and `marks` of existing rows.
  void set_base(std::span<const Row> rows);

  /// Creates a snapshot of all rows. Any thread can read the snapshot while rows are added and removed, because places
  /// of the snapshot are not reused during its life. The snapshot must not outlive this object. If budget and disk are
  /// exhausted, add() of this table and of other tables waits for the snapshot's end. `never_waits`: reserves the
  /// budget that this table may need during the snapshot, for evicted rows and for the growth of the map, so that add()
  /// never waits. Returns null and sets `why_not` if that budget is not available, if the snapshot would need more than
  /// `memory` bytes of host memory, or if another snapshot exists.
  std::shared_ptr<DiskSnapshot> snapshot(int64_t memory, bool never_waits, std::string& why_not);
  /// Host memory in bytes that the snapshot uses now in addition to the map, plus the bytes reserved for the map's
  /// growth.
  int64_t snapshot_bytes() const { return snapshot_bytes_ + promised_host_; }

  /// Traffic since construction, and the time for which callers of this object have waited for the disk.
  struct Traffic {
    int64_t rows_written = 0, rows_read = 0;
    int64_t rows_read_ahead = 0;  ///< rows of `rows_read` that read_ahead() had already read
    int64_t rows_moved = 0;       ///< rows moved within the file by compaction
    double seconds = 0;
  };
  const Traffic& traffic() const { return traffic_; }
  /// Number of rows that read_ahead() has found on disk. Thread-safe.
  int64_t rows_ahead() const { return rows_ahead_; }
  /// Bytes read from the disk device because the page cache lacked them; 0 if the system does not count them.
  struct Fetched {
    int64_t ahead = 0;  ///< bytes read by read_ahead()
    int64_t again = 0;  ///< read a second time by read(), because the system had dropped the pages after read_ahead()
  };
  /// Thread-safe.
  Fetched fetched() const { return {fetched_ahead_, fetched_again_}; }

 private:
  /// Calls change(row) for each row, and prefetches the map entries of later rows.
  template <class Change>
  void for_each_row(std::span<const Row> rows, const Change& change) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size()) prefetch(rows[i + kAhead].key, rows[i + kAhead].slot);
      change(rows[i]);
    }
  }
  /// How the map must grow for `more_rows` more rows: the additional bytes on the host or, if the host budget is
  /// exhausted, on disk. `entries` is 0 if the map need not grow. During the growth the old and the new map both exist.
  struct MapGrowth {
    size_t entries = 0;
    int64_t on_host = 0, on_disk = 0;
  };
  MapGrowth map_growth(int64_t more_rows) const;
  void grow_map(const MapGrowth&);
  bool end_snapshot(bool wait) override;
  int64_t give_disk(int64_t bytes) override;
  // Available budget, including the bytes promised to this table.
  int64_t disk_room() const { return budget_.disk_room() + promised_disk_; }
  int64_t host_room() const { return budget_.host_room() + promised_host_; }
  /// Bytes by which the file must grow for `more_rows` more rows.
  int64_t disk_growth(int64_t more_rows) const {
    return (more_rows - std::min(more_rows, places_.free())) * record_bytes_;
  }
  /// Whether the budget suffices for `count` more rows.
  bool has_room(int64_t count) const;
  /// Frees as much budget as possible for `count` more rows. First releases ended snapshots, then takes free places of
  /// other tables, and last waits for snapshots to end.
  void find_room(int64_t count);
  /// Adjusts the bytes counted in the budget to the new file size. `before`: the previous number of places.
  void count_places(int64_t before);
  /// Updates the bytes that the budget promises to this table: the growth that is still possible during the snapshot.
  void count_promises();
  /// Allocates up to `count` places, limited by the budget. `in_order`: whether to prefer contiguous places. If false,
  /// prefers free places anywhere in the file.
  std::vector<uint32_t> take_places(int64_t count, bool in_order);
  void give_back(std::span<const uint32_t> places);
  /// Frees places that could not be written, and drops free places at the end of the file.
  void undo(std::span<const uint32_t> places);
  /// Reads the records of `rows`, which are sorted by place. Within a segment, also reads the gaps between these
  /// records.
  void read_segments(std::span<const Row> rows, std::byte* records) const;
  /// Moves rows sorted by place to the places `to`. `records`: scratch. Returns whether reading and writing succeeded.
  /// If not, the rows are unchanged, and the next read or write reports the error.
  bool move_rows(std::span<Row> rows, const std::vector<uint32_t>& to, std::vector<std::byte>& records);
  /// Compaction: moves rows out of nearly empty segments so that `wanted` contiguous places become free, as far as the
  /// budget permits.
  void move_together(int64_t wanted);
  /// The common part of add() and add_behind() before places are allocated.
  void prepare_to_add(std::span<Row> rows, const std::byte* records);
  /// Whether new rows now get contiguous places.
  bool adds_in_order() const;
  /// Inserts rows into the map. The place of each row must be set.
  void enter(std::span<const Row> rows);
  /// Repeats failed writes at other free places. If there are too few free places, throws the error of the first failed
  /// write and changes nothing.
  void settle();
  /// Waits until no write of add_behind() is pending, then calls settle().
  void settle_all();
  void write_elsewhere();
  /// Writes records[i] to the place of rows[i].
  void write(std::span<const Row> rows, const std::byte* records);
  uint32_t checksum(const Row&, const std::byte* record) const;
  int64_t offset(uint32_t place) const { return static_cast<int64_t>(place) * record_bytes_; }
  /// A run of rows with adjacent places: order[first] to order[first + count - 1].
  struct Run {
    size_t first, count;
    bool in_memory;  // the records are also adjacent in memory
  };
  std::vector<Run> runs_of(std::span<const Row> rows, const std::vector<uint32_t>& order) const;
  void read_run(const Run&, std::span<const Row> rows, const std::vector<uint32_t>& order,
                const std::vector<bool>& asked, std::byte* records) const;

  /// Reads the records of `rows` into fetched_, in groups. Skips rows that are no longer on disk.
  void fetch(std::span<const Row> rows) const;
  /// Copies to `records` the records that are still in memory, and removes their rows from `order`.
  void read_from_memory(std::span<const Row> rows, std::vector<uint32_t>& order, std::byte* records) const;
  /// Notes that read_ahead() has requested these places.
  void note_asked(std::span<const uint32_t> places) const;
  /// Returns for each row whether read_ahead() has requested the row since it was last read. Clears these flags.
  std::vector<bool> take_asked(std::span<const Row> rows) const;

  RowMemory& budget_;
  std::string label_;
  int64_t record_bytes_;
  std::shared_ptr<ScratchFile> shared_file_;  // shared with a snapshot
  ScratchFile& file_;
  mutable ThreadPool threads_;
  mutable std::mutex changes_;  // locked to change the map, and to read the map in other threads
  DiskMap map_;
  DiskPlaces places_;
  DiskWrites writes_;
  // blocks passed to add_behind() that writes_ still holds
  std::vector<std::pair<const std::byte*, std::span<const Row>>> behind_;
  std::shared_ptr<SnapshotUse> snapshot_;  // null without a snapshot
  int64_t snapshot_bytes_ = 0;
  int64_t places_for_snapshot_ = 0;  // Maximum places of the file and maximum entries of the map during the snapshot.
  size_t entries_for_snapshot_ = 0;
  int64_t promised_disk_ = 0, promised_host_ = 0;  // unused part of the bytes promised for the snapshot
  mutable Traffic traffic_;
  mutable std::vector<bool> asked_;    // [place]; guarded by changes_
  mutable FetchedRecords fetched_;     // guarded by changes_
  mutable std::mutex ahead_;           // locked by read_ahead()
  std::unique_ptr<ThreadPool> fetch_;  // threads of read_ahead(); null: records are not buffered
  mutable std::atomic<int64_t> rows_ahead_ = 0, fetched_ahead_ = 0, fetched_again_ = 0;
};

}  // namespace hctr
