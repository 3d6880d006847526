// The reader: threads that convert the files of a set, in any format, to batches in memory supplied by the caller.
// There are two implementations. Both deliver the same batches and accept each other's positions.
//
// Reading by chunks (reader_chunks.cc), for any set:
//
//   files -> chunks          one thread at a time               chunk_source.h
//         -> parsed chunks   worker threads in parallel         parsed_chunk_stream.h
//         -> rows            collector thread                   row_stream.h
//         -> batch buffers   filler thread and its thread pool  batch_fill.h
//         -> next()
//
// Chunks are numbered when they are cut. The order of samples therefore depends on the set and, when shuffling, on seed
// and pass, but not on the number of workers. All queues are bounded: in addition to the batch buffers, memory holds
// one chunk and two parsed chunks per worker, and the rows of three batches. If the format supports it, each of several
// ranks only counts the other ranks' rows and parses its own (rank_slice.h; shuffled_slice.h when shuffling). Otherwise
// each rank parses all rows and drops those of the other ranks.
//
// Reading by rows (reader_rows.cc), if the record of each row is known by arithmetic (row_map.h), without shuffling and
// without skipping bad records:
//
//   files -> batch buffers   worker threads in parallel, each for a range of rows  row_tasks.h, one_hot_batch.h
//         -> next()
//
// In addition to the batch buffers, memory holds the bytes of one such range per worker.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "formats/catalog/format_table.h"
#include "formats/data/batch_layout.h"
#include "formats/data/data_section.h"
#include "formats/data/sample_block.h"
#include "formats/reader/file_feed.h"
#include "formats/reader/reader_position.h"

namespace hctr {

struct ReaderSet;
class ReaderRun;

struct ReaderOptions {
  int64_t batch = 0;   ///< batch size over all ranks
  int workers = 1;     ///< parsing threads
  bool repeat = true;  ///< restart at the end of the set; a batch may then span two passes
  KeyWidth key_width = KeyWidth::detect;
  int rank = 0, ranks = 1;  ///< this rank reads rows [batch * rank / ranks, batch * (rank + 1) / ranks) of each batch
  bool keep_last_partial = true;  ///< without repeat: deliver a smaller last batch
  int64_t shuffle = 0;            ///< rows per shuffle window; rows are shuffled within a window. 0: set order
  uint64_t seed = 0;              ///< seed of shuffling and negative sampling
  double negative_share = 1;      ///< fraction of the negatives (label 0) to deliver
  ReaderPosition from = {};       ///< start position
  /// A reader thread calls this with each filled batch, before next() returns the buffer. Must not throw.
  std::function<void(const BatchView&)> on_filled = {};
  std::shared_ptr<FileFeed> feed = {};  ///< names the files of a growing set; null: the files of the source
};

/// Data of a batch that are not in its buffer.
struct PassedOn {
  KeptCells kept;  ///< cells of Source::keep in this rank's rows
  /// One number for each record skipped since the previous batch: how many rows of this batch, over all ranks, precede
  /// the record. Not set when shuffling.
  std::vector<int64_t> rows_before_bad;
};

/// Identifies a data set without reading its contents.
struct DataFingerprint {
  int64_t files = 0, bytes = 0;
  uint64_t sizes = 0;                         ///< hash of all file sizes in order
  std::vector<SlotKeyRule> slot_key_rules{};  ///< rules of slots whose keys depend on column types
  bool operator==(const DataFingerprint&) const = default;
};

/// Reads one set. Threads start in the constructor and prefetch until all buffers are full.
///
/// Each batch fills its buffer up to layout.bytes. Of the StepState, the reader sets first_sample (index of this rank's
/// row 0, counted since the start or the last reset()), valid_samples and global_samples. Skipped bad records are
/// counted; the first in each file is logged. Callers may change only the StepState in a buffer. They must not change
/// other bytes, because the reader does not rewrite bytes that are equal in all batches.
class Reader {
 public:
  /// `buffers`: layout.bytes each, aligned for any type; must outlive the reader. Errors: those of the format for
  /// missing files and invalid headers; Error(data) if the set is empty.
  Reader(const DataSection&, const Source&, const BatchLayout&, std::vector<std::byte*> buffers, const ReaderOptions&,
         const Log&);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Waits for the next batch, at most `limit`. Returns whether next() would return or throw without blocking.
  bool wait(std::chrono::milliseconds limit);
  /// Waits for the next batch and returns its buffer index: 0, 1, ..., n-1, 0, ... Returns nothing at the end of the
  /// set. With `repeat`, the set has no end. Errors: those of the reader threads, after all batches before the error.
  std::optional<int> next();
  /// Releases a buffer for refilling. Thread-safe; buffers may be released in any order.
  void release(int buffer);
  /// Restarts at `from` with buffer 0. Reclaims all buffers, so no buffer may be in use.
  void reset(const ReaderPosition& from = {});

  /// The PassedOn of the last batch that next() returned. Call at most once per batch.
  PassedOn take_passed_on() { return std::move(passed_on_); }

  /// The position after the last batch that next() returned. A reader that starts at this position, with the same set,
  /// batch size, shuffle window and seed, delivers the batches that would follow, for any number of ranks and workers.
  ReaderPosition position() const { return position_; }
  /// The start of the next pass after position(), for epochs with different orders. Resets the sample count to 0.
  ReaderPosition next_pass() const;

  /// Describes the last row of the last batch for messages: "record 18 of '<file>'". If records are not counted, or if
  /// some were skipped, returns only the file. When shuffling, returns an empty text.
  std::string place_of_last_row() const;

  /// Number of samples, like SampleSet::samples(). With negative sampling, an estimate of the delivered samples.
  int64_t samples() const;
  bool samples_estimated() const;
  /// At the end of the set: number of samples that were not delivered, because they come after the last full batch. 0
  /// if samples() is exact.
  int64_t rows_left_over() const;
  /// Whether samples have labels. Always true unless Source::labels_optional.
  bool has_labels() const;
  /// The fingerprint of the set. Errors: Error(io) if a file is missing.
  DataFingerprint fingerprint() const;
  /// Bytes per key, 4 or 8, that suffice for all keys delivered so far.
  int key_bytes() const;
  /// Number of records skipped up to the last delivered row. A record is counted once per pass.
  int64_t skipped_records() const { return skipped_; }
  /// Number of rows parsed since the start or the last reset(), including batches not delivered yet.
  int64_t parsed_rows() const;

 private:
  std::unique_ptr<ReaderSet> set_;
  std::unique_ptr<ReaderRun> run_;
  ReaderPosition position_;
  int64_t skipped_ = 0;
  PassedOn passed_on_;
};

}  // namespace hctr
