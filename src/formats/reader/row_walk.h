// A walk over the rows of a set, pass after pass, by arithmetic: it reads none of them.
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
  /// Starts at the chunk position of `from`; its `rows` are not skipped. The set has rows, and `from` lies in one of
  /// its `files`.
  RowWalk(const RowMap&, size_t files, bool repeat, const ReaderPosition& from);

  /// Rows to the end of the set; the largest int64 when repeating.
  int64_t left() const;
  /// The next rows, at most `most` and at most to the end of the file. At least one row must be left.
  RecordRange next(int64_t most);
  void skip(int64_t count);
  /// The position after the last row returned; at the end of a pass still in that pass. Its counts of samples and bad
  /// records are not set.
  ReaderPosition position() const;

 private:
  const RowMap& map_;
  size_t files_, file_;
  bool repeat_;
  int64_t pass_, record_, pass_left_ = 0;
};

}  // namespace hctr
