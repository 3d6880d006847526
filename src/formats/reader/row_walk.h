// Walks over the rows of a set by arithmetic, pass after pass, without reading the files.
#pragma once

#include "formats/data/row_map.h"
#include "formats/reader/reader_position.h"

namespace hctr {

/// Consecutive records of one file.
struct RecordRange {
  size_t file = 0;
  int64_t first = 0, count = 0;
};

class RowWalk {
 public:
  /// Starts at the chunk boundary of `from`; does not skip from.rows. The set must have rows, and from.file must be
  /// below `files`.
  RowWalk(const RowMap&, size_t files, bool repeat, const ReaderPosition& from);

  /// Number of rows to the end of the set; the largest int64 with `repeat`.
  int64_t left() const;
  /// The next rows, at most `most` and within one file. Requires left() > 0.
  RecordRange next(int64_t most);
  void skip(int64_t count);
  /// The position after the last returned row. If this row is the last one of a pass, the position is the end of that
  /// pass, not the start of the next. Does not set the counts of samples and bad records.
  ReaderPosition position() const;

 private:
  const RowMap& map_;
  size_t files_, file_;
  bool repeat_;
  int64_t pass_, record_, pass_left_ = 0;
};

}  // namespace hctr
