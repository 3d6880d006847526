#include "train/look_ahead_depth.h"

#include <algorithm>

namespace hctr {

void LookAheadDepth::note(int64_t ahead, int64_t again) {
  ahead_ += ahead;
  again_ += again;
  if (++batches_ < kBatches) return;
  if (depth_ == 0 || ahead_ + again_ >= kLeastBytes) decide();
  batches_ = 0;
  ahead_ = again_ = 0;
}

void LookAheadDepth::decide() {
  const bool lost = depth_ > 0 && static_cast<double>(again_) > kMostLost * static_cast<double>(ahead_ + again_);
  if (lost) {
    --depth_;
    if (trying_) wait_ = std::min(2 * wait_, kMostWait);
    waited_ = 0;
  } else if (depth_ == most_) {
    wait_ = kLeastWait;
  } else if (++waited_ == wait_) {
    ++depth_;
    waited_ = 0;
    trying_ = true;
    return;
  }
  trying_ = false;
}

}  // namespace hctr
