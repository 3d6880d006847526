// The reader: threads that turn the files of a set, of whatever format, into batches in memory that the caller
// supplies. There are two ways.
//
// By way of blocks (reader_blocks.cc), for any set:
//
//   files --(one thread at a time)--> chunks --(workers, in parallel)--> blocks --(collector)--> rows --(filler, in
//   parallel)--> batch slots --> next() sample_set.h      chunk_source.h              block_stream.h row_stream.h
//   batch_fill.h
//
// Chunks get their place in line when they are cut, so the order of samples depends on the set, and when shuffling on
// the seed and the pass, but not on the number of workers. All queues are bounded: besides the filled slots, memory
// holds a chunk of each worker, two parsed ones of each, and the rows of three batches.
//
// Of several ranks each parses its own rows where the format can count the others (share.h), else all, and keeps its
// own.
//
// Row by row (reader_rows.cc), where arithmetic says which record each row of a batch is (row_map.h): nothing is
// shuffled and no bad record left out.
//
//   files --(workers, in parallel: each a stretch of the rank's rows of a batch)--> batch slots --> next()
//   row_tasks.h                                                                    one_hot_batch.h
//
// Besides the slots, memory holds the bytes of one stretch for each worker. Both ways deliver the same batches, and
// each goes on from the other's positions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/batch_layout.h"
#include "data/data_section.h"
#include "data/formats/format_table.h"
#include "data/reader/reader_position.h"

namespace hctr {

struct ReaderSet;
class ReaderRun;

struct ReaderOptions {
  int64_t batch = 0;   ///< samples of all ranks together
  int workers = 1;     ///< parsing threads
  bool repeat = true;  ///< start over at the end of the set; batches then run across the end
  KeyWidth key_width = KeyWidth::detect;
  int rank = 0, ranks = 1;  ///< this rank gets rows [batch * rank / ranks, batch * (rank + 1) / ranks) of each batch
  bool keep_last_partial = true;  ///< without repeat: deliver the last, smaller batch
  int64_t shuffle = 0;            ///< rows of the window within which they are put into random order; 0: as they stand
  uint64_t seed = 0;              ///< of that order
  ReaderPosition from = {};       ///< where to start
};

/// Reads one set. The threads start at once and run ahead until all slots are full.
///
/// Each batch fills its slot up to layout.bytes and, of the StepState, sets first_sample (of this rank's row 0, counted
/// since the very start or the last reset()), valid_samples and global_samples. Bad records that the section's policy
/// leaves out are counted; the first of each file is logged. Who has a slot writes nothing but the StepState there:
/// what is the same in the next batch is not written again.
class Reader {
 public:
  /// `slots`: memory of layout.bytes each, aligned for any type, alive as long as the reader.
  /// Errors: those of the format for files that are missing or whose headers are wrong; Error(data) when the set is
  /// empty.
  Reader(const DataSection&, const Source&, const BatchLayout&, std::vector<std::byte*> slots, const ReaderOptions&,
         const Log&);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Waits for the next batch and returns its slot: 0, 1, ..., n-1, 0, ... Empty at the end of the set; never when
  /// repeating. Errors: what a thread met, once the batches before it are delivered.
  std::optional<int> next();
  /// The slot may be filled again. Any thread may call it, in any order of slots.
  void release(int slot);
  /// Starts again at `from` and slot 0. Takes all slots back, so nobody may be using one.
  void reset(const ReaderPosition& from = {});

  /// Behind the last row of the batch that next() returned last: a reader of the same set with the same batch, shuffle
  /// and seed that starts from here goes on with exactly the batches that this one will deliver, on any number of ranks
  /// and workers.
  ReaderPosition position() const { return position_; }
  /// The start of the pass behind that: for epochs that are to be shuffled anew. Counts samples from 0.
  ReaderPosition next_pass() const;

  /// Samples in the set, as SampleSet has it.
  int64_t samples() const;
  /// Records left out up to the last row delivered; those of earlier passes count again.
  int64_t skipped_records() const { return skipped_; }
  /// Rows parsed since the start or the last reset(), of the batches that are being made among them.
  int64_t parsed_rows() const;

 private:
  std::unique_ptr<ReaderSet> set_;
  std::unique_ptr<ReaderRun> run_;
  ReaderPosition position_;
  int64_t skipped_ = 0;
};

}  // namespace hctr
