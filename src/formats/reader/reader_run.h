// The state and threads of a Reader: two ways of turning the files of a set into batches, of which the Reader uses the
// one that fits.
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

/// The state of a Reader that outlives a reset.
struct ReaderSet {
  std::unique_ptr<SampleSet> samples;
  BatchLayout layout;
  std::vector<std::byte*> buffers;
  ReaderOptions options;
  int64_t rank_begin = 0, rank_end = 0;  ///< this rank's rows of a batch
  Recycler<SampleBlock> blocks;
  BadRecordReport bad_report;
  size_t kept_columns;  ///< size of Source::keep
  NegativeSampling negatives;
  int64_t delivered_samples = 0;          ///< samples of a pass; with negative sampling an estimate
  std::optional<int64_t> pass_rows = {};  ///< when shuffling, once a run has come to the end of the set
  int64_t rows_left_over = 0;             ///< the last rows of a pass, of all ranks, that are in no batch

  PassOptions pass_options() const {
    return {.repeat = options.repeat, .shuffle_files = options.shuffle > 0 && !options.feed, .seed = options.seed};
  }
  /// This rank's rows of a batch of `rows` rows.
  int64_t rows_of_rank(int64_t rows) const { return std::clamp<int64_t>(rows - rank_begin, 0, rank_end - rank_begin); }
  /// Fills the counts of a batch of `rows` rows of all ranks; `first_sample`: of its first row.
  void describe(StepState&, int64_t rows, int64_t first_sample) const;
};

/// A filled buffer.
struct ReadyBatch {
  int buffer;
  ReaderPosition after;  ///< the position after its last row
  int64_t skipped;       ///< records skipped since the very start
  PassedOn passed_on{};
};

/// The threads and queues that read a set from one position on. They start when it is made, and end when it is
/// destroyed.
class ReaderRun {
 public:
  virtual ~ReaderRun() = default;
  // As Reader has them.
  virtual bool wait(std::chrono::milliseconds limit) = 0;
  virtual std::optional<ReadyBatch> next() = 0;
  virtual void release(int buffer) = 0;
  virtual int64_t parsed_rows() const = 0;
};

/// Parses chunks, gathers the rows of each batch from them and lays these out: for any set.
std::unique_ptr<ReaderRun> run_by_chunks(ReaderSet&, const ReaderPosition& from);
/// Parses rows straight into their batch, if nothing moves them. `rows`: the RowMap of the set, which has some rows.
std::unique_ptr<ReaderRun> run_by_rows(ReaderSet&, const RowMap& rows, const ReaderPosition& from);

}  // namespace hctr
