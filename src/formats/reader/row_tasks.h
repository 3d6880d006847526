// Divides one rank's rows of each batch into tasks for several workers.
#pragma once

#include "formats/reader/reader_run.h"
#include "formats/reader/row_walk.h"

namespace hctr {

/// Rows for one call of RowParser::parse().
struct RowTask {
  RecordRange rows;         ///< empty if the rank has no rows in the batch
  int64_t row = 0;          ///< the first row's index in its batch
  bool check_only = false;  ///< rows delivered before the reader's start, parsed only to report errors
};

/// Issues the tasks of successive batches. Not thread-safe.
class RowTasks {
 public:
  /// Errors: Error(data) if the set does not have the position `from`.
  RowTasks(const ReaderSet&, const RowMap&, const ReaderPosition& from);

  /// Advances to the next batch and returns its number of rows over all ranks; 0 at the end of the set.
  int64_t begin();
  /// The next task of the batch. Every batch has at least one task.
  RowTask next();
  /// Whether all tasks of the batch were returned.
  bool whole() const { return at_ == rows_; }
  /// The position after the batch. Requires whole().
  ReaderPosition position() const;

 private:
  const ReaderSet& set_;
  int64_t most_;  // maximum rows per task
  RowWalk walk_;
  ReaderPosition from_;
  int64_t to_check_;  // rows delivered earlier, which are only parsed to report errors
  int64_t samples_;   // total samples up to the end of the batch
  // rows_: rows of the batch; at_: rows of the batch before the next task, over all ranks
  int64_t rows_ = 0, at_ = 0;
};

}  // namespace hctr
