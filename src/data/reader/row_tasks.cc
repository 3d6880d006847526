#include "data/reader/row_tasks.h"

#include <algorithm>

namespace hctr {
namespace {

constexpr int64_t kTogether = 64;  // tasks begin at multiples of these in a batch, where a stretch has so many: keys of
                                   // one slot then fill whole cache lines

/// The most rows of a task: every batch is work for all workers, as few slots may be free.
int64_t most_rows(const ReaderSet& set, int64_t stretch) {
  const int64_t each = (set.rank_end - set.rank_begin) / set.options.workers / kTogether * kTogether + kTogether;
  return std::min(each, stretch < kTogether ? std::max<int64_t>(1, stretch) : stretch / kTogether * kTogether);
}

RowWalk walk_from(const ReaderSet& set, const RowMap& map, const ReaderPosition& from) {
  expect_file_of(from, set.samples->files().size());
  return {map, set.samples->files().size(), set.options.repeat, from};
}

}  // namespace

RowTasks::RowTasks(const ReaderSet& set, const RowMap& map, const ReaderPosition& from)
    : set_(set),
      most_(most_rows(set, map.stretch())),
      walk_(walk_from(set, map, from)),
      from_(from),
      look_(std::min(from.rows, walk_.left())),
      samples_(from.samples) {}

int64_t RowTasks::begin() {
  rows_ = std::min(set_.options.batch, walk_.left() - look_);
  if (rows_ < set_.options.batch && !set_.options.keep_last_partial) rows_ = 0;
  samples_ += rows_;
  at_ = 0;
  return rows_;
}

RowTask RowTasks::next() {
  if (look_ > 0) {
    const Stretch rows = walk_.take(std::min(look_, most_));
    look_ -= rows.count;
    return {.rows = rows, .look = true};
  }
  const int64_t begin = std::min(set_.rank_begin, rows_), end = begin + set_.share_of(rows_);
  const auto pass_to = [&](int64_t row) {
    walk_.skip(row - at_);
    at_ = row;
  };
  if (at_ < begin) pass_to(begin);
  RowTask task{.row = at_ - begin};
  if (at_ < end) task.rows = walk_.take(std::min(end - at_, most_ - task.row % most_));
  at_ += task.rows.count;
  if (at_ == end) pass_to(rows_);
  return task;
}

ReaderPosition RowTasks::position() const {
  ReaderPosition at = walk_.position();
  at.samples = samples_;
  at.bad_records = from_.bad_records;
  return at;
}

}  // namespace hctr
