// The rows of a store that are on a disk: which of them come to memory, which leave it, and where they go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/device/buffer.h"
#include "engine/disk/disk_rows.h"
#include "engine/disk/missing_keys.h"
#include "engine/disk/record_blocks.h"
#include "engine/disk/turnover.h"
#include "engine/rows/row_figures.h"
#include "engine/rows/rows_in_memory.h"
#include "formats/checkpoint/state_reader.h"
#include "ops/embedding/row_records.h"

namespace hctr {

/// Whether the keys of a batch that have no row get one.
enum class NewKeys { get_rows, get_none };

/// Rows that batches seldom use, or used long ago, leave the memory, and come back before a batch that has their keys
/// is looked up. Kernels see rows in memory alone. A row that leaves leaves a free place, which one that comes takes.
/// How much memory there is, and that the batch fits there, is the store's business.
class RowDiskTier {
 public:
  struct Rules {
    int64_t rows_at_a_time = 0;  ///< that one lookup may need
    int64_t batch_keys = 0;      ///< most keys of one batch
    size_t batches_ahead = 0;    ///< that may be queued
    bool all_exist = false;      ///< each key has a row from the start
    bool places_for_new = true;  ///< new keys take free places; false: a gate decides later which of them get a row
  };
  /// All but the rules outlive it.
  RowDiskTier(RowMemory& budget, RowsInMemory&, const Rules&);

  const DiskRows& disk() const { return *disk_; }
  DiskRows& disk() { return *disk_; }
  const RecordBlocks& records() const { return records_; }
  /// No row is on the disk from now on.
  void clear();
  /// Rows in memory have grown to so many.
  void set_capacity(int64_t rows) { disk_->set_room_ahead(records_.most_ahead(rows)); }
  DiskUse use() const;

  // A batch, before it is looked up.
  /// The batch that comes next is of this step. And: steps have other numbers from now on.
  void begin_step(uint32_t step);
  void forget_steps() { recent_steps_.clear(); }
  /// Lists the keys of the batch that have no row in memory, if there may be any, and does not wait; find_arrivals()
  /// for the same batch whose new keys get rows does not wait then, once the stream has been waited for. Returns
  /// whether it has queued work. `rows`: [batch.size()] scratch.
  bool list_missing(Context&, const ops::KeyBatch&, int32_t* rows);
  /// What a batch needs that is not in memory.
  struct Arrivals {
    std::span<const ops::MissingKey> missing;
    std::vector<DiskRows::Row> from_disk, fresh;  // fresh: new keys
    NewKeys new_keys;
    int64_t count() const { return static_cast<int64_t>(from_disk.size() + fresh.size()); }
  };
  /// None: nothing can be missing. Else waits for the stream, unless list_missing() was called.
  std::optional<Arrivals> find_arrivals(Context&, const ops::KeyBatch&, int32_t* rows, NewKeys);
  /// Rows on the disk may have other places now.
  void find_again(Arrivals&) const;
  /// How many of them have no free place, and get numbers behind those of all rows.
  int64_t rows_at_end(const Arrivals&) const;
  /// Whether any of them come from the disk, or are new and take a free place.
  bool has_work(const Arrivals&) const;
  /// Whether evaluations have looked up rows since the last call that was true.
  bool consume_lookups() { return std::exchange(lookups_queued_, false); }
  /// They come, but for new keys that have no free place: index_insert gives them rows at the end. Memory and index
  /// have room. Waits for the stream.
  void bring(Context&, const Arrivals&);
  /// The new rows of the last batch stay. And: they go, if they have not been kept; nothing is queued.
  void keep_new_rows() { entered_.clear(); }
  void drop_refused_rows();

  // Rows leave.
  /// Rows that do not leave: those of the batch alone, with nothing queued, or those of all batches that may be queued.
  enum class Stay { of_batch, recent };
  /// `least` rows or more leave; `needed` more are to fit. Waits for the prepare stream. False, and none leaves, if too
  /// many stay. `rows`: [count] of the batch.
  bool leave(int64_t least, int64_t needed, const int32_t* rows, int64_t count, Stay);
  /// Has rows written to the disk. They stay in memory. `left`: how many are there, also where others have no room.
  void put_out(std::span<const int32_t> rows, size_t& left);
  /// Of the `count` rows that leave first, those on the disk and rows 1 to `rows` whose fate is open counted, has those
  /// on the disk removed, and returns the number of the others.
  int64_t remove_lowest(Context&, const ops::RowRanks&, int64_t rows, int64_t count, const ops::RemovalMemory&);

  /// Rows have been removed from memory, and so many others have moved up into their places, and into all free ones.
  void note_closed(int64_t moved) { moved_up_ += moved; }

  /// Any thread, any time: has the rows of these keys that are on the disk read into the cache of the system, without
  /// waiting for it. `slot` counts where rows belong to slots.
  void look_ahead(std::span<const ops::RowOwner> keys) const;

  // The values of rows on the disk.
  /// Of the column with this name, as they are stored: "vectors", "state0", "last_step", ....
  std::vector<std::byte> values(std::string_view column, std::span<const DiskRows::Row>) const;
  /// Of a column, as they are stored.
  void read(const RowColumn&, std::span<const DiskRows::Row>, std::byte* to) const;
  /// The bytes from `first` on of a column of these rows.
  void read(const RowColumn&, std::span<const DiskRows::Row>, int64_t first, std::span<std::byte> to) const;
  /// Adds rows first to last of a checkpoint. `owner`: of a row that has none there; empty: all have.
  void load(const StateReader&, int64_t first, int64_t last, const std::function<ops::RowOwner(int64_t)>& owner);
  size_t offset_in_record(const RowColumn&) const;
  /// Rows that are moved at a time.
  size_t block_rows() const { return records_.rows(); }

  /// Notes the number of different rows of a training batch, behind its preparation.
  void count_batch_rows(const ops::GroupCounts*);

 private:
  struct StridedBytes {
    std::byte* first;
    size_t stride;
  };
  /// The values of a column in these.
  StridedBytes values_of(const RowColumn&, DiskRows::Row* rows, std::byte* records) const;
  /// Whether keys of a batch may be on the disk, or more of them new than memory has room for.
  bool may_miss_rows(const ops::KeyBatch&, NewKeys) const;
  /// Adds what count_batch_rows() has noted, once its stream has been waited for.
  void add_batch_count();
  /// Of rows 1 to `rows` those that have left according to RowArrays::left(), but not to free_. Ascending.
  std::vector<int32_t> rows_that_leave(int64_t rows) const;
  /// Removes rows from the disk that are in memory, too.
  void take_from_disk(std::span<const int32_t> rows);
  /// Their keys go, and their places are free. Nothing that searches for keys is queued, and no step has the rows. The
  /// numbers ascend.
  void forget_rows(std::span<const int32_t> rows);

  enum class From { disk, new_keys };
  enum class To { places, end };
  ops::RecordParts record_parts(const RecordBlocks::Block&, bool with_records) const;
  /// The same of rows that come, with their places in the last whole checkpoint.
  ops::RecordParts parts_that_come(const RecordBlocks::Block&, From) const;
  /// Calls body(first, count, piece) for pieces of a block that memory of the device has room for; on the CPU for
  /// itself.
  void for_record_pieces(size_t rows, const RecordBlocks::Block&,
                         const std::function<void(size_t, size_t, const RecordBlocks::Block&)>& body);
  /// The next block, which has these rows once the prepare stream is done. Errors: of records that were not written.
  RecordBlocks::Block start_records(std::span<const int32_t> rows);
  /// At most block_rows() rows come to memory, to free places or behind all others, on the stream of the context, which
  /// is waited for.
  void take_in(Context&, std::span<const DiskRows::Row>, From, To);

  RowMemory& budget_;
  RowArrays& arrays_;
  RowIndex& index_;
  FreeRows& free_;  // places of evicted rows: no step that is queued has them, and no key leads to them
  Runtime& runtime_;
  const Rules rules_;
  RecordBlocks records_;  // before disk_, whose thread reads them
  std::unique_ptr<DiskRows> disk_;
  Turnover turnover_;                   // of the rows in memory, by those that leave for the disk
  std::vector<int32_t> entered_;        // free places that new rows took for the last batch, until keep_new_rows()
  std::vector<uint32_t> recent_steps_;  // of the batches that may be queued
  bool lookups_queued_ = false;         // of evaluations, perhaps
  MissingKeys missing_;
  bool listed_ = false;  // missing_ has the keys of the batch that comes next
  std::optional<HostBuffer> batch_counts_;
  bool counted_ = false;  // batch_counts_ holds a count
  int64_t batch_rows_ = 0, brought_ = 0, into_places_ = 0, moved_up_ = 0, waits_to_leave_ = 0;  // see DiskUse
};

}  // namespace hctr
