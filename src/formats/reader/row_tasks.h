// One rank's rows of batch after batch, cut into tasks for several workers.
#pragma once

#include "formats/reader/reader_run.h"
#include "formats/reader/row_walk.h"

namespace hctr {

/// Rows that one worker parses in one call.
struct RowTask {
  RecordRange rows;         ///< none, when the rank has no rows in a batch
  int64_t row = 0;          ///< the row of the batch where they go
  bool check_only = false;  ///< delivered before the reader's start: parsed for their errors alone
};

/// Not thread-safe: its users call it under a lock.
class RowTasks {
 public:
  /// Errors: Error(data) when the set has no such position.
  RowTasks(const ReaderSet&, const RowMap&, const ReaderPosition& from);

  /// Advances to the next batch and returns its rows of all ranks; 0 at the end of the set.
  int64_t begin();
  /// The next task of that batch; it has at least one.
  RowTask next();
  /// Whether next() returned the last task of the batch.
  bool whole() const { return at_ == rows_; }
  /// The position after the batch, once whole().
  ReaderPosition position() const;

 private:
  const ReaderSet& set_;
  int64_t most_;  // rows of a task
  RowWalk walk_;
  ReaderPosition from_;
  int64_t to_check_;           // rows delivered before that have not been checked
  int64_t samples_;            // up to the end of the batch
  int64_t rows_ = 0, at_ = 0;  // rows of the batch: all, and those already in tasks or of other ranks
};

}  // namespace hctr
