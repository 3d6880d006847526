// The rows of a set in the order in which they are delivered: that of the set, or shuffled.
#pragma once

#include <memory>
#include <vector>

#include "formats/reader/batch_fill.h"
#include "formats/reader/parsed_chunk_stream.h"

namespace hctr {

/// Rows of one batch.
struct Rows {
  std::vector<RowRange> ranges;
  std::vector<std::shared_ptr<const void>> owners;  ///< keep the memory of the ranges alive
  /// For each bad record before or among the rows: the rows before it, of all ranks. In set order only.
  std::vector<int64_t> rows_before_bad;

  /// Drops all rows but [begin, end), which must have been parsed.
  void keep_slice(int64_t begin, int64_t end);
};

class RowStream {
 public:
  virtual ~RowStream() = default;
  /// Appends the next rows, at most `most`, and returns how many; fewer only at the end of the set. Rows of other ranks
  /// are counted and not appended; when shuffling they are, without a block where they were not parsed.
  virtual int64_t next(int64_t most, Rows& rows) = 0;
  /// The position of the next row. Its `samples` is not set.
  virtual ReaderPosition position() const = 0;
  /// Records skipped since the very start, up to the end of the chunk or window of the last row.
  virtual int64_t bad_records() const = 0;
  /// At the end of the set, the rows of its last pass; none where they are not known.
  virtual std::optional<int64_t> pass_rows() const { return {}; }
};

/// The order of the set, from `from` on. The stream may have a slice.
std::unique_ptr<RowStream> in_order(ParsedChunkStream&, const ReaderPosition& from);

/// Each pass is cut into windows of `window` rows, the last of a pass shorter. The order of each window depends on the
/// seed, the pass and the window's number alone. Memory holds two windows: the one that is delivered, and the next one,
/// which fills at the same rate. The stream has no slice.
std::unique_ptr<RowStream> shuffled(ParsedChunkStream&, const ReaderPosition& from, int64_t window, uint64_t seed);

}  // namespace hctr
