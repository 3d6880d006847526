// The rows of a store that are on disk: chooses which rows are evicted and which return, and moves them.
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

/// Whether new keys of a batch get rows.
enum class NewKeys { get_rows, get_none };

/// Rows that batches use rarely, or used long ago, are evicted from memory, and return before a batch with their keys
/// is looked up. Kernels see only rows in memory. An evicted row leaves a free place, which an incoming row reuses. The
/// store decides how much memory there is, and that the batch fits.
class RowDiskTier {
 public:
  struct Rules {
    int64_t rows_at_a_time = 0;  ///< rows that one lookup may need
    int64_t batch_keys = 0;      ///< maximum keys of one batch
    size_t batches_ahead = 0;    ///< batches that may be queued
    bool all_exist = false;      ///< each key has a row from the start
    /// new keys use free places; false: an admission gate decides later which of them get a row
    bool places_for_new = true;
  };
  /// All but the rules outlive it.
  RowDiskTier(RowMemory& budget, RowsInMemory&, const Rules&);

  const DiskRows& disk() const { return *disk_; }
  DiskRows& disk() { return *disk_; }
  const RecordBlocks& records() const { return records_; }
  /// Removes all rows from disk.
  void clear();
  /// Rows in memory have grown to this number.
  void set_capacity(int64_t rows) { disk_->set_room_ahead(records_.most_ahead(rows)); }
  DiskUse use() const;

  // A batch, before it is looked up.
  /// Sets the step of the next batch. forget_steps(): step numbers change.
  void begin_step(uint32_t step);
  void forget_steps() { recent_steps_.clear(); }
  /// Lists the keys of the batch without a row in memory, if there may be any, without waiting; once the stream has
  /// been waited for, find_arrivals() for the same batch does not wait. Returns whether it has queued work. `rows`:
  /// [batch.size()] scratch.
  bool list_missing(Context&, const ops::KeyBatch&, int32_t* rows);
  /// The rows of a batch that are not in memory.
  struct Arrivals {
    std::span<const ops::MissingKey> missing;
    std::vector<DiskRows::Row> from_disk, fresh;  // fresh: new keys
    NewKeys new_keys;
    int64_t count() const { return static_cast<int64_t>(from_disk.size() + fresh.size()); }
  };
  /// None: nothing can be missing. Otherwise waits for the stream, unless list_missing() was called.
  std::optional<Arrivals> find_arrivals(Context&, const ops::KeyBatch&, int32_t* rows, NewKeys);
  /// Searches again, because rows on disk may have moved.
  void find_again(Arrivals&) const;
  /// The number of them without a free place, which get numbers after all rows.
  int64_t rows_at_end(const Arrivals&) const;
  /// Whether any of them are on disk, or are new and use a free place.
  bool has_work(const Arrivals&) const;
  /// Whether evaluations have looked up rows since the last call that returned true.
  bool consume_lookups() { return std::exchange(lookups_queued_, false); }
  /// Brings them to memory, except new keys without a free place: index_insert gives them rows at the end. Memory and
  /// index must have room. Waits for the stream.
  void bring(Context&, const Arrivals&);
  /// The new rows of the last batch stay. drop_refused_rows(): they are removed, unless kept; nothing may be queued.
  void keep_new_rows() { entered_.clear(); }
  void drop_refused_rows();

  // Evictions.
  /// Rows that are not evicted: those of the batch alone, with nothing queued, or those of all batches that may be
  /// queued.
  enum class Stay { of_batch, recent };
  /// Evicts at least `least` rows, to make room for `needed` more. Waits for the prepare stream. False if too many must
  /// stay: then nothing is evicted. `rows`: [count] of the batch.
  bool leave(int64_t least, int64_t needed, const int32_t* rows, int64_t count, Stay);
  /// Writes rows to disk; they also stay in memory. `left`: the number written, even if there is no room for the rest.
  void put_out(std::span<const int32_t> rows, size_t& left);
  /// Removes the `count` rows that rank lowest among those on disk and rows 1 to `rows` with open fate: removes those
  /// on disk, and returns the number of the others.
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
  /// Loads rows `first` to `last` of a checkpoint. `owner`: for rows without one there; empty: all have one.
  void load(const StateReader&, int64_t first, int64_t last, const std::function<ops::RowOwner(int64_t)>& owner);
  size_t offset_in_record(const RowColumn&) const;
  /// Rows moved at a time.
  size_t block_rows() const { return records_.rows(); }

  /// Adds the number of distinct rows of a training batch to the statistics, after its preparation.
  void count_batch_rows(const ops::GroupCounts*);

 private:
  struct StridedBytes {
    std::byte* first;
    size_t stride;
  };
  /// The values of a column in these records.
  StridedBytes values_of(const RowColumn&, DiskRows::Row* rows, std::byte* records) const;
  /// Whether keys of a batch may be on disk, or more of them may be new than fit in memory.
  bool may_miss_rows(const ops::KeyBatch&, NewKeys) const;
  /// Adds the counts of count_batch_rows(), after its stream has been waited for.
  void add_batch_count();
  /// Rows 1 to `rows` that are evicted by RowArrays::left() but not in free_ yet. Ascending.
  std::vector<int32_t> rows_that_leave(int64_t rows) const;
  /// Removes rows from disk that are also in memory.
  void take_from_disk(std::span<const int32_t> rows);
  /// Removes their keys and frees their places. Nothing queued searches for keys, and no step uses the rows. The
  /// numbers are ascending.
  void forget_rows(std::span<const int32_t> rows);

  enum class From { disk, new_keys };
  enum class To { places, end };
  ops::RecordParts record_parts(const RecordBlocks::Block&, bool with_records) const;
  /// The same for incoming rows, with their places in the last full checkpoint.
  ops::RecordParts parts_that_come(const RecordBlocks::Block&, From) const;
  /// Calls body(first, count, piece) for parts of a block that fit in device memory; on a CPU for the block itself.
  void for_record_pieces(size_t rows, const RecordBlocks::Block&,
                         const std::function<void(size_t, size_t, const RecordBlocks::Block&)>& body);
  /// The next block, filled with these rows once the prepare stream has finished. Errors: those of records that were
  /// not written.
  RecordBlocks::Block start_records(std::span<const int32_t> rows);
  /// Moves at most block_rows() rows to memory, to free places or after all others, on the stream of the context, and
  /// waits for it.
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
  bool listed_ = false;  // missing_ has the keys of the next batch
  std::optional<HostBuffer> batch_counts_;
  bool counted_ = false;  // batch_counts_ holds a count
  int64_t batch_rows_ = 0, brought_ = 0, into_places_ = 0, moved_up_ = 0, waits_to_leave_ = 0;  // see DiskUse
};

}  // namespace hctr
