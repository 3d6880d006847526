// The rows of a set in delivery order: set order, or shuffled.
#pragma once

#include <memory>
#include <vector>

#include "formats/reader/batch_fill.h"
#include "formats/reader/parsed_chunk_stream.h"

namespace hctr {

/// The rows of one batch.
struct Rows {
  std::vector<RowRange> ranges;
  std::vector<std::shared_ptr<const void>> owners;  ///< own the memory of the ranges
  /// One number for each bad record before or among these rows: how many of the rows, over all ranks, precede the
  /// record. Only in set order.
  std::vector<int64_t> rows_before_bad;

  /// Drops all rows outside [begin, end). The remaining rows must have been parsed.
  void keep_slice(int64_t begin, int64_t end);
};

class RowStream {
 public:
  virtual ~RowStream() = default;
  /// Appends up to `most` rows and returns their number, which is smaller only at the end of the set. In set order,
  /// rows of other ranks are counted but not appended. When shuffling, rows of other ranks are appended, with a null
  /// block if they were not parsed.
  virtual int64_t next(int64_t most, Rows& rows) = 0;
  /// The position of the next row. Its `samples` is not set.
  virtual ReaderPosition position() const = 0;
  /// Total number of skipped records. If rows come in the order of the set, it includes the whole chunk of the last row
  /// that next() returned. When shuffling, it includes the whole window of this row.
  virtual int64_t bad_records() const = 0;
  /// At the end of the set: number of rows in the last pass; empty if unknown.
  virtual std::optional<int64_t> pass_rows() const { return {}; }
};

/// Rows in set order, starting at `from`. The chunk stream may have a slice.
std::unique_ptr<RowStream> in_order(ParsedChunkStream&, const ReaderPosition& from);

/// Shuffled rows. Each pass is divided into windows of `window` rows; the last window of a pass may be shorter. The
/// order within a window depends only on seed, pass and window index. Memory holds two windows. For each row of the
/// current window that is delivered, a row is added to the next window. The chunk stream must not have a slice.
std::unique_ptr<RowStream> shuffled(ParsedChunkStream&, const ReaderPosition& from, int64_t window, uint64_t seed);

}  // namespace hctr
