#include "data/chunk_source.h"

namespace hctr {

ChunkSource::ChunkSource(std::vector<fs::path> files, const NormDemands& demands, bool repeat)
    : files_(std::move(files)), demands_(demands), repeat_(repeat) {}

bool ChunkSource::next(NormChunk& chunk) {
  for (;;) {
    if (open_ && open_->next(chunk)) return true;
    open_.reset();
    if (next_file_ == files_.size()) {
      if (!repeat_) return false;
      next_file_ = 0;
      ++pass_;
    }
    open_.emplace(files_[next_file_++], demands_);
  }
}

}  // namespace hctr
