#include "formats/reader/chunk_source.h"

#include <numeric>
#include <utility>

#include "core/base/expect.h"
#include "formats/reader/shuffle.h"

namespace hctr {

std::vector<size_t> file_order(size_t files, int64_t pass, const PassOptions& pass_options) {
  std::vector<size_t> order(files);
  std::iota(order.begin(), order.end(), size_t{0});
  if (pass_options.shuffle_files)
    shuffle(order, random_key(pass_options.seed, random_stream("order of files")), static_cast<uint64_t>(pass));
  return order;
}

ChunkSource::ChunkSource(SampleSet& set, const PassOptions& pass_options, const ReaderPosition& from)
    : set_(set), pass_options_(pass_options), pass_(from.pass) {
  if (set.grows()) {  // the file may not exist yet
    next_file_ = from.file;
    begin_ = {.record = from.record, .offset = from.offset};
    return;
  }
  expect_file_of(from, set.files().size());
  order_ = file_order(set.files().size(), pass_, pass_options_);
  open(from.file, {.record = from.record, .offset = from.offset});
}

void ChunkSource::open(int64_t file, FilePosition from) {
  open_ = set_.open(index_of(file), from);
  next_file_ = file + 1;
}

void ChunkSource::close() {
  closed_ = true;
  set_.wake();
}

bool ChunkSource::next(Chunk& chunk) {
  for (;;) {
    if (open_ && open_->next(chunk)) {
      chunk.file = index_of(next_file_ - 1);
      return true;
    }
    open_.reset();
    if (set_.grows()) {
      if (!set_.wait_for_file(static_cast<size_t>(next_file_), closed_)) return false;
      open(next_file_, std::exchange(begin_, {}));
      continue;
    }
    if (next_file_ == static_cast<int64_t>(order_.size())) {
      if (!pass_options_.repeat) return false;
      next_file_ = 0;
      order_ = file_order(order_.size(), ++pass_, pass_options_);
    }
    open(next_file_, {});
  }
}

}  // namespace hctr
