// The disk tier of a row store: chooses the rows to evict and to promote, and moves them.
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

/// Rarely used rows, and rows used long ago, are evicted to disk. Before a batch is looked up, the rows of its keys are
/// promoted to memory. Kernels access only rows in memory. An evicted row leaves a free row number, which an incoming
/// row reuses. The row store decides how much memory rows get, and ensures that a batch fits.
class RowDiskTier {
 public:
  struct Rules {
    int64_t rows_at_a_time = 0;  ///< maximum rows that one lookup needs
    int64_t batch_keys = 0;      ///< maximum keys of one batch
    size_t batches_ahead = 0;    ///< batches that may be queued
    bool all_exist = false;      ///< every key has a row from the start
    /// True: new keys get free row numbers. False: an admission gate decides later which new keys get rows.
    bool places_for_new = true;
  };
  /// `budget` and the RowsInMemory must outlive this object.
  RowDiskTier(RowMemory& budget, RowsInMemory&, const Rules&);

  const DiskRows& disk() const { return *disk_; }
  DiskRows& disk() { return *disk_; }
  const RecordBlocks& records() const { return records_; }
  /// Removes all rows from disk.
  void clear();
  /// Call when the capacity for rows in memory has grown to `rows`.
  void set_capacity(int64_t rows) { disk_->set_room_ahead(records_.most_ahead(rows)); }
  DiskUse use() const;

  // Called for each batch, before its lookup:

  /// Sets the step number of the next batch. Call forget_steps() if step numbers restart.
  void begin_step(uint32_t step);
  void forget_steps() { recent_steps_.clear(); }
  /// If keys of the batch may have no row in memory, queues the search for such keys. Does not wait. Returns whether
  /// work was queued. If the stream is synchronized afterwards, find_arrivals() for the same batch does not wait.
  /// `rows`: scratch [batch.size()].
  bool list_missing(Context&, const ops::KeyBatch&, int32_t* rows);
  /// The keys of a batch whose rows are not in memory.
  struct Arrivals {
    std::span<const ops::MissingKey> missing;
    std::vector<DiskRows::Row> from_disk, fresh;  // from_disk: rows on disk to promote; fresh: keys without a row
    NewKeys new_keys;
    int64_t count() const { return static_cast<int64_t>(from_disk.size() + fresh.size()); }
  };
  /// Returns nullopt if no row can be missing. If rows can be missing, waits for the stream, unless list_missing() was
  /// called.
  std::optional<Arrivals> find_arrivals(Context&, const ops::KeyBatch&, int32_t* rows, NewKeys);
  /// Searches the disk map again, because rows on disk may have moved.
  void find_again(Arrivals&) const;
  /// The number of arrivals for which no row number is free. These arrivals get new row numbers after the last row.
  int64_t rows_at_end(const Arrivals&) const;
  /// Whether bring() has work: whether some arrivals are on disk, or are new and get a free row number.
  bool has_work(const Arrivals&) const;
  /// Whether evaluations have queued lookups since the last call that returned true.
  bool consume_lookups() { return std::exchange(lookups_queued_, false); }
  /// Promotes the rows on disk and assigns free row numbers to new keys. index_insert() later appends the remaining new
  /// keys. Memory and index must have capacity. Waits for the stream.
  void bring(Context&, const Arrivals&);
  /// keep_new_rows(): declares that the new rows of the last batch stay. drop_refused_rows(): removes the new rows that
  /// were not kept; no work may be queued.
  void keep_new_rows() { entered_.clear(); }
  void drop_refused_rows();

  // Evictions.

  /// The rows that an eviction must not choose. of_batch: rows of this batch; no work may be queued. recent: rows of
  /// all batches that may be queued.
  enum class Stay { of_batch, recent };
  /// Evicts at least `least` rows, to free memory for `needed` more rows. Waits for the prepare stream. If too many
  /// rows must stay, evicts nothing and returns false. `rows` [count]: the rows of the batch.
  bool leave(int64_t least, int64_t needed, const int32_t* rows, int64_t count, Stay);
  /// Writes rows to disk; the rows also stay in memory. Sets `left` to the number of written rows, also on an error.
  void put_out(std::span<const int32_t> rows, size_t& left);
  /// Chooses the `count` lowest-ranked rows among the rows on disk and rows 1 to `rows` with fate "open". Removes the
  /// chosen rows on disk, and returns the number of the chosen rows in memory.
  int64_t remove_lowest(Context&, const ops::RowRanks&, int64_t rows, int64_t count, const ops::RemovalMemory&);

  /// Adds `moved` to the statistics. Call after a removal that moved this many rows to lower row numbers to close all
  /// gaps.
  void note_closed(int64_t moved) { moved_up_ += moved; }

  /// If records of these keys are on disk, asks the system to read the records into its cache. Does not wait.
  /// Thread-safe at any time. `slot` is used only if the table's rows depend on slots.
  void look_ahead(std::span<const ops::RowOwner> keys) const;

  // Column values of rows on disk.

  /// The stored values of the column with this name: "vectors", "state0", "last_step", ....
  std::vector<std::byte> values(std::string_view column, std::span<const DiskRows::Row>) const;
  /// Reads the stored values of a column.
  void read(const RowColumn&, std::span<const DiskRows::Row>, std::byte* to) const;
  /// Reads the bytes [first, first + to.size()) of the column's array over these rows.
  void read(const RowColumn&, std::span<const DiskRows::Row>, int64_t first, std::span<std::byte> to) const;
  /// Loads rows `first` to `last` of a checkpoint. `owner`: returns the key and slot of a row if the checkpoint stores
  /// no keys. An empty `owner` means that the checkpoint stores keys and slots.
  void load(const StateReader&, int64_t first, int64_t last, const std::function<ops::RowOwner(int64_t)>& owner);
  size_t offset_in_record(const RowColumn&) const;
  /// Rows per block.
  size_t block_rows() const { return records_.rows(); }

  /// Adds the number of distinct rows of a training batch to the statistics. Call after the batch is prepared.
  void count_batch_rows(const ops::GroupCounts*);

 private:
  struct StridedBytes {
    std::byte* first;
    size_t stride;
  };
  /// The addresses of a column's values in these rows and records.
  StridedBytes values_of(const RowColumn&, DiskRows::Row* rows, std::byte* records) const;
  /// Whether rows of the batch's keys may be on disk, or the batch may have more new keys than fit in memory.
  bool may_miss_rows(const ops::KeyBatch&, NewKeys) const;
  /// Adds the count that count_batch_rows() copied. The stream of that copy must have been synchronized.
  void add_batch_count();
  /// Returns, sorted, those rows from 1 to `rows` that have the fate "leaves" in RowArrays::left() and are not in free_
  /// yet.
  std::vector<int32_t> rows_that_leave(int64_t rows) const;
  /// Removes rows from disk that are also in memory.
  void take_from_disk(std::span<const int32_t> rows);
  /// Removes the keys of these rows from the index and frees their row numbers. No queued work may search for the keys
  /// or use the rows. `rows` is sorted.
  void forget_rows(std::span<const int32_t> rows);

  enum class From { disk, new_keys };
  enum class To { places, end };
  ops::RecordParts record_parts(const RecordBlocks::Block&, bool with_records) const;
  /// Like record_parts(), for incoming rows. Adds each row's record number in the last full checkpoint, and its change
  /// marks.
  ops::RecordParts parts_that_come(const RecordBlocks::Block&, From) const;
  /// Calls body(first, count, piece) for each piece of a block that fits in device memory. On a CPU the only piece is
  /// the block itself.
  void for_record_pieces(size_t rows, const RecordBlocks::Block&,
                         const std::function<void(size_t, size_t, const RecordBlocks::Block&)>& body);
  /// Queues the packing of these rows into the next block, on the prepare stream. Errors: write errors of earlier
  /// records.
  RecordBlocks::Block start_records(std::span<const int32_t> rows);
  /// Moves at most block_rows() rows to memory on the context's stream, and waits for the stream. To::places: the rows
  /// get free row numbers. To::end: the rows follow all other rows.
  void take_in(Context&, std::span<const DiskRows::Row>, From, To);

  RowMemory& budget_;
  RowArrays& arrays_;
  RowIndex& index_;
  FreeRows& free_;  // row numbers of evicted rows, which no queued step uses and to which no key maps
  Runtime& runtime_;
  const Rules rules_;
  RecordBlocks records_;  // declared before disk_, whose writer thread reads the blocks
  std::unique_ptr<DiskRows> disk_;
  Turnover turnover_;                   // replacement period of the rows in memory
  std::vector<int32_t> entered_;        // reused row numbers of new rows of the last batch; see keep_new_rows()
  std::vector<uint32_t> recent_steps_;  // steps of the batches that may be queued
  bool lookups_queued_ = false;         // evaluations may have queued lookups
  MissingKeys missing_;
  bool listed_ = false;  // missing_ already has the keys of the next batch
  std::optional<HostBuffer> batch_counts_;
  bool counted_ = false;  // batch_counts_ has a count that add_batch_count() has not added yet
  int64_t batch_rows_ = 0, brought_ = 0, into_places_ = 0, moved_up_ = 0, waits_to_leave_ = 0;  // see DiskUse
};

}  // namespace hctr
