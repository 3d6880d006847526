#include "formats/reader/row_tasks.h"

#include <algorithm>

namespace hctr {
namespace {

// Tasks with at least kAlignedRows rows start at multiples of kAlignedRows, so that the keys of a slot fill whole cache
// lines.
constexpr int64_t kAlignedRows = 64;

/// Maximum rows per task. Every batch is divided among all workers, because few buffers may be free.
int64_t rows_of_task(const ReaderSet& set, int64_t max_rows) {
  const int64_t each =
      (set.rank_end - set.rank_begin) / set.options.workers / kAlignedRows * kAlignedRows + kAlignedRows;
  return std::min(each,
                  max_rows < kAlignedRows ? std::max<int64_t>(1, max_rows) : max_rows / kAlignedRows * kAlignedRows);
}

RowWalk walk_from(const ReaderSet& set, const RowMap& map, const ReaderPosition& from) {
  expect_file_of(from, set.samples->files().size());
  return {map, set.samples->files().size(), set.options.repeat, from};
}

}  // namespace

RowTasks::RowTasks(const ReaderSet& set, const RowMap& map, const ReaderPosition& from)
    : set_(set),
      most_(rows_of_task(set, map.max_rows())),
      walk_(walk_from(set, map, from)),
      from_(from),
      to_check_(std::min(from.rows, walk_.left())),
      samples_(from.samples) {}

int64_t RowTasks::begin() {
  rows_ = std::min(set_.options.batch, walk_.left() - to_check_);
  if (rows_ < set_.options.batch && !set_.options.keep_last_partial) rows_ = 0;
  samples_ += rows_;
  at_ = 0;
  return rows_;
}

RowTask RowTasks::next() {
  if (to_check_ > 0) {
    const RecordRange rows = walk_.next(std::min(to_check_, most_));
    to_check_ -= rows.count;
    return {.rows = rows, .check_only = true};
  }
  const int64_t begin = std::min(set_.rank_begin, rows_), end = begin + set_.rows_of_rank(rows_);
  const auto skip_to = [&](int64_t row) {
    walk_.skip(row - at_);
    at_ = row;
  };
  if (at_ < begin) skip_to(begin);
  RowTask task{.row = at_ - begin};
  if (at_ < end) task.rows = walk_.next(std::min(end - at_, most_ - task.row % most_));
  at_ += task.rows.count;
  if (at_ == end) skip_to(rows_);
  return task;
}

ReaderPosition RowTasks::position() const {
  ReaderPosition at = walk_.position();
  at.samples = samples_;
  at.bad_records = from_.bad_records;
  return at;
}

}  // namespace hctr
