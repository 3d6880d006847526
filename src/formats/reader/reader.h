// The reader: threads that turn the files of a set, of any format, into batches in memory that the caller supplies.
// There are two ways, which deliver the same batches; each can start from the other's positions.
//
// By chunks (reader_chunks.cc), for any set:
//
//   files -> chunks          one thread at a time          chunk_source.h
//         -> parsed chunks   workers, in parallel          parsed_chunk_stream.h
//         -> rows            one thread, the collector     row_stream.h
//         -> batch buffers   one thread and its pool       batch_fill.h
//         -> next()
//
// Chunks get their number when they are cut, so the order of samples depends on the set, and when shuffling on the seed
// and the pass, but not on the number of workers. All queues are bounded: besides the filled buffers, memory holds a
// chunk of each worker, two parsed ones of each, and the rows of three batches. Each of several ranks parses its own
// rows if the format can count the others (rank_slice.h, and shuffled_slice.h when shuffling); otherwise it parses all
// and drops the others.
//
// By rows (reader_rows.cc), if arithmetic gives the record of each row of a batch (row_map.h), nothing is shuffled and
// no bad record is skipped:
//
//   files -> batch buffers   workers, in parallel: each a range of the rank's rows of a batch   row_tasks.h,
//         -> next()                                                                             one_hot_batch.h
//
// Besides the buffers, memory holds the bytes of one such range for each worker.
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
  int64_t batch = 0;   ///< samples of all ranks together
  int workers = 1;     ///< parsing threads
  bool repeat = true;  ///< start over at the end of the set; batches then run across it
  KeyWidth key_width = KeyWidth::detect;
  int rank = 0, ranks = 1;  ///< this rank gets rows [batch * rank / ranks, batch * (rank + 1) / ranks) of each batch
  bool keep_last_partial = true;  ///< without repeat: deliver the last, smaller batch
  int64_t shuffle = 0;            ///< rows of a window, within which the order is random; 0: the order of the set
  uint64_t seed = 0;              ///< seed of that order, and of negative sampling
  double negative_share = 1;      ///< delivered share of the samples with label 0
  ReaderPosition from = {};       ///< where to start
  /// Called with each batch in a thread of the reader, before next() returns its buffer. Does not throw.
  std::function<void(const BatchView&)> on_filled = {};
  std::shared_ptr<FileFeed> feed = {};  ///< the set is the files that this names; none: those of the source
};

/// Facts about a batch that its buffer does not hold.
struct PassedOn {
  KeptCells kept;  ///< the cells of Source::keep in this rank's rows
  /// For each record skipped after the previous batch: the rows of this batch before it, of all ranks. Not when
  /// shuffling.
  std::vector<int64_t> rows_before_bad;
};

/// The identity of a data set, found without reading it.
struct DataFingerprint {
  int64_t files = 0, bytes = 0;
  uint64_t sizes = 0;                         ///< a hash of the sizes of all files in their order
  std::vector<SlotKeyRule> slot_key_rules{};  ///< rules of slots whose keys the types of columns decide
  bool operator==(const DataFingerprint&) const = default;
};

/// Reads one set. The threads start at once and run ahead until all buffers are full.
///
/// Each batch fills its buffer up to layout.bytes and, of the StepState, sets first_sample (of this rank's row 0,
/// counted since the very start or the last reset()), valid_samples and global_samples. Bad records that the section's
/// policy leaves out are counted; the first of each file is logged. Users of a buffer write nothing but its StepState:
/// what is the same in the next batch is not written again.
class Reader {
 public:
  /// `buffers`: layout.bytes each, aligned for any type, alive as long as the reader.
  /// Errors: those of the format for files that are missing or whose headers are wrong; Error(data) when the set is
  /// empty.
  Reader(const DataSection&, const Source&, const BatchLayout&, std::vector<std::byte*> buffers, const ReaderOptions&,
         const Log&);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Waits for the next batch, for at most `limit`. Returns whether next() would return or throw at once.
  bool wait(std::chrono::milliseconds limit);
  /// Waits for the next batch and returns the index of its buffer: 0, 1, ..., n-1, 0, ... Empty at the end of the set;
  /// never when repeating. Errors: those thrown by a thread, once the batches before it are delivered.
  std::optional<int> next();
  /// The buffer may be filled again. Any thread may call it, in any order of buffers.
  void release(int buffer);
  /// Restarts at `from` and buffer 0. Reclaims all buffers, so none may be in use.
  void reset(const ReaderPosition& from = {});

  /// The same for the batch that next() returned last; call once.
  PassedOn take_passed_on() { return std::move(passed_on_); }

  /// The position after the last row of the batch that next() returned last. A reader of the same set with the same
  /// batch, shuffle and seed that starts there delivers exactly the batches that this one would, on any number of ranks
  /// and workers.
  ReaderPosition position() const { return position_; }
  /// The start of the pass after that position, for epochs with an order of their own. Counts samples from 0.
  ReaderPosition next_pass() const;

  /// The source of the last row of the batch that next() returned last, for messages: "record 18 of '<file>'"; only the
  /// file if records are not counted or some before it were skipped; empty when shuffling.
  std::string place_of_last_row() const;

  /// Samples in the set, as SampleSet::samples(); with negative sampling an estimate of the delivered ones.
  int64_t samples() const;
  bool samples_estimated() const;
  /// Once next() has found the end of the set: the samples after the last batch, which were too few for one; 0 where
  /// samples() is exact.
  int64_t rows_left_over() const;
  /// Whether the samples have labels; only a Source with optional ones may have none.
  bool has_labels() const;
  /// Errors: Error(io) when a file is missing.
  DataFingerprint fingerprint() const;
  /// Bytes that the keys delivered so far fit: 4 or 8.
  int key_bytes() const;
  /// Records skipped up to the last row delivered; those of earlier passes count again.
  int64_t skipped_records() const { return skipped_; }
  /// Rows parsed since the start or the last reset(), with those of batches that are not delivered yet.
  int64_t parsed_rows() const;

 private:
  std::unique_ptr<ReaderSet> set_;
  std::unique_ptr<ReaderRun> run_;
  ReaderPosition position_;
  int64_t skipped_ = 0;
  PassedOn passed_on_;
};

}  // namespace hctr
