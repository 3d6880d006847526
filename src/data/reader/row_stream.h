// The rows of a set in the order in which they are delivered: as they stand, or shuffled.
#pragma once

#include <memory>
#include <vector>

#include "data/reader/batch_fill.h"
#include "data/reader/block_stream.h"

namespace hctr {

/// Rows of one batch.
struct Rows {
  std::vector<RowRange> ranges;
  std::vector<std::shared_ptr<const void>> kept;  ///< whatever must stay as long as the ranges are used

  /// Leaves rows [begin, end) of them.
  void keep_slice(int64_t begin, int64_t end);
};

class RowStream {
 public:
  virtual ~RowStream() = default;
  /// Appends the next rows, `most` at most, and returns how many; fewer only at the end of the set. Rows of other
  /// shares are counted and not appended.
  virtual int64_t take(int64_t most, Rows& rows) = 0;
  /// Of the next row, but for `samples`.
  virtual ReaderPosition position() const = 0;
  /// Left out since the very start, up to the end of what the last row was read with.
  virtual int64_t bad_records() const = 0;
};

/// As they stand, from `from` on. Only here may rows be shared.
std::unique_ptr<RowStream> in_order(BlockStream&, const ReaderPosition& from);

/// Each pass is cut into windows of `window` rows, the last of a pass shorter, and each window is put into an order
/// that depends on the seed, the pass and its number alone. Rows move within their window, so memory holds two windows:
/// one going out, and the next, which fills as fast as the first empties.
std::unique_ptr<RowStream> shuffled(BlockStream&, const ReaderPosition& from, int64_t window, uint64_t seed);

}  // namespace hctr
