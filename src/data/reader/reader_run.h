// What a Reader keeps, and its threads: two ways of turning the files of a set into batches, of which the Reader takes
// the one that fits.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "data/reader/block_stream.h"
#include "data/reader/reader.h"
#include "data/row_map.h"

namespace hctr {

/// What outlives a reset.
struct ReaderSet {
  std::unique_ptr<SampleSet> samples;
  BatchLayout layout;
  std::vector<std::byte*> slots;
  ReaderOptions options;
  int64_t rank_begin = 0, rank_end = 0;  ///< this rank's rows of a batch
  Recycler<SampleBlock> blocks;
  BadRecordCare care;

  Passage passage() const {
    return {.repeat = options.repeat, .shuffle_files = options.shuffle > 0, .seed = options.seed};
  }
  /// This rank's part of a batch of `rows` rows.
  int64_t share_of(int64_t rows) const { return std::clamp<int64_t>(rows - rank_begin, 0, rank_end - rank_begin); }
  /// What a batch of `rows` rows of all ranks says of itself; `first_sample`: its first row.
  void describe(StepState&, int64_t rows, int64_t first_sample) const;
};

/// A filled slot, and where the reader stands behind it.
struct Ready {
  int slot;
  ReaderPosition behind;
  int64_t skipped;  ///< records left out since the very start
};

/// The threads and queues of one go through the set. They start when it is made, and end when it is destroyed.
class ReaderRun {
 public:
  virtual ~ReaderRun() = default;
  virtual std::optional<Ready> next() = 0;  ///< as Reader has them
  virtual void release(int slot) = 0;
  virtual int64_t parsed_rows() const = 0;
};

/// Chunks are parsed into blocks, whose rows are gathered and laid out: for any set.
std::unique_ptr<ReaderRun> run_of_blocks(ReaderSet&, const ReaderPosition& from);
/// Rows go from their file into their place: where nothing moves them. `rows` is that of the set, which has some.
std::unique_ptr<ReaderRun> run_of_rows(ReaderSet&, const RowMap& rows, const ReaderPosition& from);

}  // namespace hctr
