// The state and threads of a Reader. ReaderRun has two implementations; the Reader chooses one.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "formats/data/row_map.h"
#include "formats/reader/negative_sampling.h"
#include "formats/reader/parsed_chunk_stream.h"
#include "formats/reader/reader.h"

namespace hctr {

/// The state of a Reader that survives reset().
struct ReaderSet {
  std::unique_ptr<SampleSet> samples;
  BatchLayout layout;
  std::vector<std::byte*> buffers;
  ReaderOptions options;
  int64_t rank_begin = 0, rank_end = 0;  ///< this rank's row range in a batch
  Recycler<SampleBlock> blocks;
  BadRecordReport bad_report;
  size_t kept_columns;  ///< number of columns in Source::keep
  NegativeSampling negatives;
  int64_t delivered_samples = 0;  ///< samples per pass; an estimate with negative sampling
  /// rows per pass; when shuffling, set after a run has reached the end of the set
  std::optional<int64_t> pass_rows = {};
  int64_t rows_left_over = 0;  ///< rows at the end of a pass, over all ranks, that are in no batch

  PassOptions pass_options() const {
    return {.repeat = options.repeat, .shuffle_files = options.shuffle > 0 && !options.feed, .seed = options.seed};
  }
  /// Number of this rank's rows in a batch of `rows` rows.
  int64_t rows_of_rank(int64_t rows) const { return std::clamp<int64_t>(rows - rank_begin, 0, rank_end - rank_begin); }
  /// Sets the counts of a batch with `rows` rows over all ranks. `first_sample`: index of the batch's first row.
  void describe(StepState&, int64_t rows, int64_t first_sample) const;
};

/// A filled buffer.
struct ReadyBatch {
  int buffer;
  ReaderPosition after;  ///< position after the batch's last row
  int64_t skipped;       ///< total records skipped
  PassedOn passed_on{};
};

/// The threads and queues that read a set from a position on. Construction starts the threads, destruction joins them.
class ReaderRun {
 public:
  virtual ~ReaderRun() = default;
  // The members of Reader with the same names call these functions.
  virtual bool wait(std::chrono::milliseconds limit) = 0;
  virtual std::optional<ReadyBatch> next() = 0;
  virtual void release(int buffer) = 0;
  virtual int64_t parsed_rows() const = 0;
};

/// Reads any set: parses chunks, collects the rows of each batch, and copies them to a buffer.
std::unique_ptr<ReaderRun> run_by_chunks(ReaderSet&, const ReaderPosition& from);
/// Reads a set with a RowMap: parses rows directly into their batch. Only for reading in set order with bad records as
/// errors. `rows`: the set's RowMap, with at least one row.
std::unique_ptr<ReaderRun> run_by_rows(ReaderSet&, const RowMap& rows, const ReaderPosition& from);

}  // namespace hctr
