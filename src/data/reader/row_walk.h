// A walk through the rows of a set, pass after pass, that knows where each lies and reads none.
#pragma once

#include "data/reader/reader_position.h"
#include "data/row_map.h"

namespace hctr {

/// Consecutive records of one file.
struct Stretch {
  size_t file = 0;
  int64_t first = 0, count = 0;
};

class RowWalk {
 public:
  /// From the place of `from` on, its `rows` not taken. The map has rows, and the place is in one of its `files`.
  RowWalk(const RowMap&, size_t files, bool repeat, const ReaderPosition& from);

  /// Rows to the end of the set; more than anybody takes when repeating.
  int64_t left() const;
  /// The next rows, `most` at most, which must be left: as many as the file has.
  Stretch take(int64_t most);
  void skip(int64_t count);
  /// Behind the last of them; at the end of a pass still in that pass. Without what is counted: samples and bad
  /// records.
  ReaderPosition position() const;

 private:
  const RowMap& map_;
  size_t files_, file_;
  bool repeat_;
  int64_t pass_, record_, pass_left_ = 0;
};

}  // namespace hctr
