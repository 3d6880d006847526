// Rows of a table that do not fit in memory, in a file of fixed-size records.
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

/// A map from keys to records of a scratch file: 43 to 86 bytes per row, in host memory, or in a separate file once the
/// host budget is used up. A record holds only the row's data; its checksum is in the map, so that a torn, altered or
/// outdated record is detected. For one thread, except for read_ahead().
class DiskRows : private RowDiskUser {
 public:
  using Row = DiskRow;
  static constexpr int64_t kMostBaseRows = (int64_t{1} << 30) - 1;
  /// `budget`: counts the bytes of the records; must outlive this. `label`: names the table in messages.
  DiskRows(RowMemory& budget, std::string label, int64_t record_bytes);
  ~DiskRows() override;
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;

  /// The maximum size of the map for this many rows.
  static constexpr int64_t bytes_in_memory(int64_t rows) { return rows * static_cast<int64_t>(sizeof(Row)) * 8 / 3; }

  /// Bytes of the map that count in the budget of host memory, and in that of the disk.
  int64_t map_bytes() const { return map_.in_file() ? 0 : map_.bytes(); }
  int64_t map_bytes_on_disk() const { return map_.in_file() ? map_.bytes() : 0; }
  bool map_on_disk() const { return map_.in_file(); }

  int64_t rows() const { return map_.rows(); }
  int64_t record_bytes() const { return record_bytes_; }
  /// Null: not found. The row can be read until the next add(), which may move rows.
  const Row* find(int64_t key, int32_t slot) const { return map_.find(key, slot); }
  /// Prefetches the start of the search for a row. The map is larger than caches: searches kAhead calls later wait less
  /// for memory.
  [[gnu::always_inline]] void prefetch(int64_t key, int32_t slot) const { map_.prefetch(key, slot); }
  static constexpr size_t kAhead = 16;

  /// Adds new rows; place and crc are set. They are contiguous in the file if the budget has room for twice as many
  /// places as there are rows, and a quarter of it is left. Errors: Error(io) beyond the budget, or of the file; the
  /// rows are then not added.
  void add(std::span<Row> rows, const std::byte* records);
  /// The same, but a thread writes them: `rows` and `records` must not change until wait_written(records). Errors:
  /// those of the budget, and of earlier records that could not be written: these stay in memory and are read from
  /// there.
  void add_behind(std::span<Row> rows, const std::byte* records);
  /// Waits until these records of add_behind() are written. Errors: Error(io) if one could not be written.
  void wait_written(const std::byte* records);
  void wait_written();
  /// Whether some records of add_behind() are only in memory: not yet written, or failed.
  bool has_unwritten() const { return writes_.has_unwritten(); }
  /// Reads the record of rows[i], a result of find() or sorted_rows(), to records[i]. Errors: Error(io) naming the row
  /// whose record differs from the one written.
  void read(std::span<const Row> rows, std::byte* records) const;
  /// Memory for records read by read_ahead(); 0: it only requests them from the system.
  void set_room_ahead(int64_t records);
  int64_t bytes_of_room_ahead(int64_t records) const {
    return records * (record_bytes_ + FetchedRecords::bytes_beside_record());
  }
  /// Any thread, concurrently with other members: asks the system to cache the records of those of these rows that are
  /// on disk, then reads and checks as many as there is memory for. A repeated row is requested once. read() returns
  /// the same bytes with and without it: records in memory that have not changed since are copied, all others are read
  /// and checked.
  void read_ahead(std::span<const ops::RowOwner> rows) const;
  void remove(std::span<const Row> rows);
  /// Removes rows last seen before this step, and returns their number.
  int64_t expire(uint32_t step);
  /// All rows in file order.
  std::vector<Row> sorted_rows() const;
  /// Clears the bit in the marks of all rows.
  void clear_marks(uint8_t bit);
  /// Sets base and marks of existing rows.
  void set_base(std::span<const Row> rows);

  /// A snapshot of all rows, which any thread can read while rows are added and removed: their places are not reused
  /// during its life. It must not outlive this. add() of this table, and of other tables of the budget, waits for its
  /// end if budget or disk have no other room; `never_waits`: the budget promises this table room for all rows that may
  /// be evicted until then, and for the map to grow. Null, with the reason in `why_not`: there is no room for that, the
  /// snapshot would take more than `memory` of the host, or one exists already.
  std::shared_ptr<DiskSnapshot> snapshot(int64_t memory, bool never_waits, std::string& why_not);
  /// Bytes in memory that the snapshot takes now, in addition to the map, and those promised to the map for it.
  int64_t snapshot_bytes() const { return snapshot_bytes_ + promised_host_; }

  /// Traffic since construction, and the time that this thread has waited for it.
  struct Traffic {
    int64_t rows_written = 0, rows_read = 0;
    int64_t rows_read_ahead = 0;  ///< those of rows_read that read_ahead() had read
    int64_t rows_moved = 0;       ///< moved together in the file
    double seconds = 0;
  };
  const Traffic& traffic() const { return traffic_; }
  /// Rows that read_ahead() has found on disk. Any thread.
  int64_t rows_ahead() const { return rows_ahead_; }
  /// Bytes read from the disk itself, because the page cache did not have them; 0 if the system does not count them.
  struct Fetched {
    int64_t ahead = 0;  ///< for read_ahead()
    int64_t again = 0;  ///< for read(), of rows that read_ahead() had requested: the cache had dropped them
  };
  /// Any thread.
  Fetched fetched() const { return {fetched_ahead_, fetched_again_}; }

 private:
  /// Calls change(row) for each, prefetching the map's entries of later rows.
  template <class Change>
  void for_each_row(std::span<const Row> rows, const Change& change) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size()) prefetch(rows[i + kAhead].key, rows[i + kAhead].slot);
      change(rows[i]);
    }
  }
  /// The growth of the map for this many more rows, on the host or, if that has no room, on disk; both 0: it does not
  /// grow. While it grows, the smaller map exists too.
  struct MapGrowth {
    size_t entries = 0;
    int64_t on_host = 0, on_disk = 0;
  };
  MapGrowth map_growth(int64_t more_rows) const;
  void grow_map(const MapGrowth&);
  bool end_snapshot(bool wait) override;
  int64_t give_disk(int64_t bytes) override;
  // Room in the budget, including what is promised to this table.
  int64_t disk_room() const { return budget_.disk_room() + promised_disk_; }
  int64_t host_room() const { return budget_.host_room() + promised_host_; }
  /// Bytes by which the file must grow for this many more rows.
  int64_t disk_growth(int64_t more_rows) const {
    return (more_rows - std::min(more_rows, places_.free())) * record_bytes_;
  }
  /// Whether this many more rows fit in the budget.
  bool has_room(int64_t count) const;
  /// Finds room for them as far as possible: of ended snapshots, then of free places of other tables, last by waiting
  /// for snapshots.
  void find_room(int64_t count);
  /// Reports the change of the file's places since `before` to the budget.
  void count_places(int64_t before);
  /// Reports to the budget what is promised to this table now: the possible growth during the snapshot.
  void count_promises();
  /// Places for this many more rows, if the budget has them: in order, or any free ones.
  std::vector<uint32_t> take_places(int64_t count, bool in_order);
  void give_back(std::span<const uint32_t> places);
  /// Returns places that could not be written, and drops those after the end of the file.
  void undo(std::span<const uint32_t> places);
  /// Reads the records of rows, which are ascending by place. Gaps between rows of a segment are read, too.
  void read_segments(std::span<const Row> rows, std::byte* records) const;
  /// Moves rows, which are ascending by place, to these places. `records`: scratch. Returns whether the disk succeeded;
  /// if not, rows are unchanged, and the next read or write reports the error.
  bool move_rows(std::span<Row> rows, const std::vector<uint32_t>& to, std::vector<std::byte>& records);
  /// Moves rows out of nearly empty segments, so that `wanted` contiguous places become free, as far as there is room.
  void move_together(int64_t wanted);
  /// The part of add() and add_behind() before rows get places.
  void prepare_to_add(std::span<Row> rows, const std::byte* records);
  /// Whether rows get contiguous places now.
  bool adds_in_order() const;
  /// Enters rows with places into the map.
  void enter(std::span<const Row> rows);
  /// Writes records whose write has failed to other places, if there are any. Errors: that of the first of them; then
  /// nothing has changed.
  void settle();
  /// The same once all records of add_behind() are written or have failed.
  void settle_all();
  void write_elsewhere();
  /// Writes records[i] to the place of rows[i].
  void write(std::span<const Row> rows, const std::byte* records);
  uint32_t checksum(const Row&, const std::byte* record) const;
  int64_t offset(uint32_t place) const { return static_cast<int64_t>(place) * record_bytes_; }
  /// Rows from order[first] on, in the order of their places, that are adjacent in the file.
  struct Run {
    size_t first, count;
    bool in_memory;  // their records are adjacent, too
  };
  std::vector<Run> runs_of(std::span<const Row> rows, const std::vector<uint32_t>& order) const;
  void read_run(const Run&, std::span<const Row> rows, const std::vector<uint32_t>& order,
                const std::vector<bool>& asked, std::byte* records) const;

  /// Reads those of these rows that still exist into fetched_, in groups.
  void fetch(std::span<const Row> rows) const;
  /// Copies records that are in memory, and removes these rows from `order`.
  void read_from_memory(std::span<const Row> rows, std::vector<uint32_t>& order, std::byte* records) const;
  /// Notes that these places have been requested.
  void note_asked(std::span<const uint32_t> places) const;
  /// For each row, whether it has been requested since its last read; clears the note.
  std::vector<bool> take_asked(std::span<const Row> rows) const;

  RowMemory& budget_;
  std::string label_;
  int64_t record_bytes_;
  std::shared_ptr<ScratchFile> shared_file_;  // with a snapshot
  ScratchFile& file_;
  mutable ThreadPool threads_;
  mutable std::mutex changes_;  // held while the map changes, and by other threads that read it
  DiskMap map_;
  DiskPlaces places_;
  DiskWrites writes_;
  std::vector<std::pair<const std::byte*, std::span<const Row>>> behind_;  // the unwritten blocks of writes_
  std::shared_ptr<SnapshotUse> snapshot_;                                  // null: no snapshot
  int64_t snapshot_bytes_ = 0;
  int64_t places_for_snapshot_ = 0;  // maximum places of the file, and entries of the map, during the snapshot
  size_t entries_for_snapshot_ = 0;
  int64_t promised_disk_ = 0, promised_host_ = 0;  // the part of these that this table has not used
  mutable Traffic traffic_;
  mutable std::vector<bool> asked_;    // by place, guarded by changes_
  mutable FetchedRecords fetched_;     // behind changes_
  mutable std::mutex ahead_;           // held by read_ahead()
  std::unique_ptr<ThreadPool> fetch_;  // threads of read_ahead(); null: it does not read
  mutable std::atomic<int64_t> rows_ahead_ = 0, fetched_ahead_ = 0, fetched_again_ = 0;
};

}  // namespace hctr
