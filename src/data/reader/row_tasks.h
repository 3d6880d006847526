// One rank's rows of batch after batch, cut into tasks for several workers.
#pragma once

#include "data/reader/reader_run.h"
#include "data/reader/row_walk.h"

namespace hctr {

/// Rows that one worker parses in one go.
struct RowTask {
  Stretch rows;     ///< none, where the rank has none of a batch
  int64_t row = 0;  ///< of the batch, where they go
  bool look =
      false;  ///< they go nowhere, as they were delivered before: what a position counts as rows must still be rows
};

/// Not thread-safe: its users take turns.
class RowTasks {
 public:
  /// Errors: Error(data) when there is no such place in the set.
  RowTasks(const ReaderSet&, const RowMap&, const ReaderPosition& from);

  /// Goes on to the next batch and returns its rows of all ranks; 0 at the end of the set.
  int64_t begin();
  /// The next task of that batch; it has at least one.
  RowTask next();
  /// Whether that was the last of the batch.
  bool whole() const { return at_ == rows_; }
  /// Behind the batch, then.
  ReaderPosition position() const;

 private:
  const ReaderSet& set_;
  int64_t most_;  // rows of a task
  RowWalk walk_;
  ReaderPosition from_;
  int64_t look_;               // rows that are still to be looked at
  int64_t samples_;            // up to the end of the batch
  int64_t rows_ = 0, at_ = 0;  // of the batch: all, and those dealt or passed over
};

}  // namespace hctr
