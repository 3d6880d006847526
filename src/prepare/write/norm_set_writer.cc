#include "prepare/write/norm_set_writer.h"

#include <algorithm>

namespace hctr {

NormSetWriter::NormSetWriter(NormStyle style, int64_t records_per_file, std::function<fs::path(int64_t)> name)
    : style_(style), records_per_file_(records_per_file), name_(std::move(name)) {}

void NormSetWriter::add(const EncodedRecords& from, int64_t first, int64_t count) {
  while (count > 0) {
    if (!open_) open_.emplace(name_(static_cast<int64_t>(files_.size())), style_);
    const int64_t take = std::min(count, records_per_file_ - open_->records());
    const size_t begin = first == 0 ? 0 : from.ends[static_cast<size_t>(first - 1)];
    const size_t end = from.ends[static_cast<size_t>(first + take - 1)];
    open_->append(std::span(from.bytes).subspan(begin, end - begin), take);
    first += take;
    count -= take;
    records_ += take;
    if (open_->records() == records_per_file_) finish_file();
  }
}

void NormSetWriter::finish_file() {
  open_->commit();
  files_.push_back(open_->path());
  open_.reset();
}

std::vector<fs::path> NormSetWriter::finish() {
  if (open_) finish_file();
  return files_;
}

}  // namespace hctr
