#include "formats/reader/row_walk.h"

#include <algorithm>
#include <limits>

#include "formats/data/sample_set.h"

namespace hctr {

RowWalk::RowWalk(const RowMap& map, size_t files, bool repeat, const ReaderPosition& from)
    : map_(map),
      files_(files),
      file_(static_cast<size_t>(from.file)),
      repeat_(repeat),
      pass_(from.pass),
      record_(std::min(from.record, map.records(file_))) {
  for (size_t file = file_; file < files_; ++file) pass_left_ += map_.records(file);
  pass_left_ -= record_;
}

int64_t RowWalk::left() const { return repeat_ ? std::numeric_limits<int64_t>::max() : pass_left_; }

RecordRange RowWalk::next(int64_t most) {
  while (record_ == map_.records(file_)) {
    record_ = 0;
    if (++file_ < files_) continue;
    file_ = 0;
    ++pass_;
  }
  const RecordRange range{file_, record_, std::min(most, map_.records(file_) - record_)};
  record_ += range.count;
  pass_left_ -= range.count;
  return range;
}

void RowWalk::skip(int64_t count) {
  while (count > 0) count -= next(count).count;
}

ReaderPosition RowWalk::position() const {
  const FilePosition at = map_.position(file_, record_);
  return {.pass = pass_, .file = static_cast<int64_t>(file_), .record = at.record, .offset = at.offset};
}

}  // namespace hctr
