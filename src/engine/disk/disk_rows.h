// Rows of a table that no memory has room for, in a file of fixed-size records.
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

/// A map from keys to records of a scratch file: 43 to 86 bytes for each row, in memory of the host, or in a file of
/// its own once the budget has no room there. A record holds what is given to it, and nothing else: its checksum is in
/// the map, so that a record that was torn, altered or left as it was before is found. For one thread, but for
/// read_ahead().
class DiskRows : private RowDiskUser {
 public:
  using Row = DiskRow;
  static constexpr int64_t kMostBaseRows = (int64_t{1} << 30) - 1;
  /// `budget`: counts the bytes of the records; outlives this. `label`: of the table, in messages.
  DiskRows(RowMemory& budget, std::string label, int64_t record_bytes);
  ~DiskRows() override;
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;

  /// The most that the map takes for so many rows.
  static constexpr int64_t bytes_in_memory(int64_t rows) { return rows * static_cast<int64_t>(sizeof(Row)) * 8 / 3; }

  /// What the map takes of the budget for memory of the host, and for the disk.
  int64_t map_bytes() const { return map_.in_file() ? 0 : map_.bytes(); }
  int64_t map_bytes_on_disk() const { return map_.in_file() ? map_.bytes() : 0; }
  bool map_on_disk() const { return map_.in_file(); }

  int64_t rows() const { return map_.rows(); }
  int64_t record_bytes() const { return record_bytes_; }
  /// Null: no such row. Rows that are found can be read until the next add(), which may give rows other places.
  const Row* find(int64_t key, int32_t slot) const { return map_.find(key, slot); }
  /// Fetches where the search for a row begins. The map is larger than caches: searches that come kAhead later wait
  /// less for memory.
  [[gnu::always_inline]] void prefetch(int64_t key, int32_t slot) const { map_.prefetch(key, slot); }
  static constexpr size_t kAhead = 16;

  /// Adds rows that are not there; their place and crc are set. They are written in one piece where the budget has room
  /// for twice as many places as there are rows, and a quarter of it is left. Errors: Error(io) beyond the budget, or
  /// of the file; the rows are then not there.
  void add(std::span<Row> rows, const std::byte* records);
  /// The same, but a thread writes them: `rows` and `records` stay as they are until wait_written(records). Errors:
  /// those of the budget, and of records that could not be written before. These stay in memory, and are read from
  /// there.
  void add_behind(std::span<Row> rows, const std::byte* records);
  /// Waits until these records of add_behind() are written. Errors: Error(io) where any could not be.
  void wait_written(const std::byte* records);
  void wait_written();
  /// Whether records of add_behind() are in memory alone: on their way, or such as could not be written.
  bool has_unwritten() const { return writes_.has_unwritten(); }
  /// records[i] = that of rows[i], which find() or sorted_rows() has returned. Errors: Error(io) naming the row whose
  /// record is not what was written.
  void read(std::span<const Row> rows, std::byte* records) const;
  /// Memory for so many records that read_ahead() reads; none: it only asks the system for them.
  void set_room_ahead(int64_t records);
  int64_t bytes_of_room_ahead(int64_t records) const {
    return records * (record_bytes_ + FetchedRecords::bytes_beside_record());
  }
  /// Any thread, while others call any other member: asks the system to have the records of those of these rows that
  /// are here in its cache soon, then reads and checks as many as there is room for. Rows that occur several times are
  /// asked for once. read() finds the same bytes with and without it: those that are as they were when it was called,
  /// in memory, and checks all others.
  void read_ahead(std::span<const ops::RowOwner> rows) const;
  void remove(std::span<const Row> rows);
  /// Removes rows last seen before this step, and returns how many.
  int64_t expire(uint32_t step);
  /// All rows in the order of the file.
  std::vector<Row> sorted_rows() const;
  /// Clears the bit in the marks of all rows.
  void clear_marks(uint8_t bit);
  /// Gives the rows, which are there, these bases and marks.
  void set_base(std::span<const Row> rows);

  /// All rows as they are now, which any thread can read while rows are added and removed here: their places are not
  /// used again as long as it is there. Outlives this. add() waits for its end where budget or disk have no other room,
  /// and so does that of other tables of the budget; `never_waits`: the budget promises this table room for all rows
  /// that may leave meanwhile, and for the map to grow. Null, and `why_not` says why: it has none, the snapshot would
  /// take more than `memory` of the host, or one is there.
  std::shared_ptr<DiskSnapshot> snapshot(int64_t memory, bool never_waits, std::string& why_not);
  /// Bytes in memory that it takes now, besides those of the map, and those that the map is promised for it.
  int64_t snapshot_bytes() const { return snapshot_bytes_ + promised_host_; }

  /// What has been moved since construction, and how long this thread has waited for it.
  struct Traffic {
    int64_t rows_written = 0, rows_read = 0;
    int64_t rows_read_ahead = 0;  ///< of rows_read, those that read_ahead() had read
    int64_t rows_moved = 0;       ///< together with others in the file
    double seconds = 0;
  };
  const Traffic& traffic() const { return traffic_; }
  /// Rows that read_ahead() has found here. Any thread.
  int64_t rows_ahead() const { return rows_ahead_; }
  /// Bytes that came from the disk itself, as the cache of the system did not have them; 0 where the system does not
  /// count them.
  struct Fetched {
    int64_t ahead = 0;  ///< for read_ahead()
    int64_t again = 0;  ///< for read(), of rows that read_ahead() had asked for: the cache had dropped them
  };
  /// Any thread.
  Fetched fetched() const { return {fetched_ahead_, fetched_again_}; }

 private:
  /// Calls change(row) for each, with the map's entries of those that follow on their way.
  template <class Change>
  void for_each_row(std::span<const Row> rows, const Change& change) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size()) prefetch(rows[i + kAhead].key, rows[i + kAhead].slot);
      change(rows[i]);
    }
  }
  /// What the map's growth for so many rows more needs of the host or, where that has no room, of the disk; both 0: it
  /// does not grow. While it grows, the smaller one is there too.
  struct MapGrowth {
    size_t entries = 0;
    int64_t on_host = 0, on_disk = 0;
  };
  MapGrowth map_growth(int64_t more_rows) const;
  void grow_map(const MapGrowth&);
  bool end_snapshot(bool wait) override;
  int64_t give_disk(int64_t bytes) override;
  // Of the budget, with what it has promised to this table.
  int64_t disk_room() const { return budget_.disk_room() + promised_disk_; }
  int64_t host_room() const { return budget_.host_room() + promised_host_; }
  /// Bytes that the file must become longer for so many rows more.
  int64_t disk_growth(int64_t more_rows) const {
    return (more_rows - std::min(more_rows, places_.free())) * record_bytes_;
  }
  /// Whether so many rows more fit, in the budget.
  bool has_room(int64_t count) const;
  /// Gets room for them, as far as there can be: of snapshots that have ended, then of free places of other tables;
  /// last of snapshots that are waited for.
  void find_room(int64_t count);
  /// Tells the budget that the file had so many places before.
  void count_places(int64_t before);
  /// Tells it what this table is promised by now: what the snapshot may need beyond what it has.
  void count_promises();
  /// Places for so many rows more, if the budget has them: in order, or wherever some are free.
  std::vector<uint32_t> take_places(int64_t count, bool in_order);
  void give_back(std::span<const uint32_t> places);
  /// Gives back places that could not be written, and forgets them where the file has not become so long.
  void undo(std::span<const uint32_t> places);
  /// records[i] = that of rows[i], which ascend by place. What lies between rows of a segment is read along.
  void read_segments(std::span<const Row> rows, std::byte* records) const;
  /// Moves rows, which ascend by place, to these places. `records`: scratch. Returns whether the disk did it; if not,
  /// they are where they were, and whoever needs them, or writes, gets the error.
  bool move_rows(std::span<Row> rows, const std::vector<uint32_t>& to, std::vector<std::byte>& records);
  /// Moves rows of segments of the file that are nearly empty together, so that `wanted` places in order are free. Does
  /// as much of it as there is room for.
  void move_together(int64_t wanted);
  /// What add() and add_behind() do before rows get places.
  void prepare_to_add(std::span<Row> rows, const std::byte* records);
  /// Whether rows get places in order now.
  bool adds_in_order() const;
  /// Enters rows that have places into the map.
  void enter(std::span<const Row> rows);
  /// Writes records that could not be written to other places, if there are any. Errors: that of the first of them, and
  /// then nothing has changed.
  void settle();
  /// The same once all records of add_behind() are written or have failed.
  void settle_all();
  void write_elsewhere();
  /// Writes records[i] to the place of rows[i].
  void write(std::span<const Row> rows, const std::byte* records);
  uint32_t checksum(const Row&, const std::byte* record) const;
  int64_t offset(uint32_t place) const { return static_cast<int64_t>(place) * record_bytes_; }
  /// Rows order[first] and so on, by place, that are one after the other in the file.
  struct Run {
    size_t first, count;
    bool in_memory;  // their records are so too
  };
  std::vector<Run> runs_of(std::span<const Row> rows, const std::vector<uint32_t>& order) const;
  void read_run(const Run&, std::span<const Row> rows, const std::vector<uint32_t>& order,
                const std::vector<bool>& asked, std::byte* records) const;

  /// Reads those of these rows that are still there into fetched_, a part of them at a time.
  void fetch(std::span<const Row> rows) const;
  /// Copies what is in memory, and takes those rows out of `order`.
  void read_from_memory(std::span<const Row> rows, std::vector<uint32_t>& order, std::byte* records) const;
  /// Notes that these places have been asked for.
  void note_asked(std::span<const uint32_t> places) const;
  /// Of each row, whether it has been asked for since it was last read, and forgets it.
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
  std::vector<std::pair<const std::byte*, std::span<const Row>>> behind_;  // what writes_ has
  std::shared_ptr<SnapshotUse> snapshot_;                                  // null: there is none
  int64_t snapshot_bytes_ = 0;
  int64_t places_for_snapshot_ = 0;  // that the file may have while it is there, and entries that the map may have
  size_t entries_for_snapshot_ = 0;
  int64_t promised_disk_ = 0, promised_host_ = 0;  // of them, what this table has not taken
  mutable Traffic traffic_;
  mutable std::vector<bool> asked_;    // by place, behind changes_
  mutable FetchedRecords fetched_;     // behind changes_
  mutable std::mutex ahead_;           // held by read_ahead()
  std::unique_ptr<ThreadPool> fetch_;  // of read_ahead(); null: it does not read
  mutable std::atomic<int64_t> rows_ahead_ = 0, fetched_ahead_ = 0, fetched_again_ = 0;
};

}  // namespace hctr
